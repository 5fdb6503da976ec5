import { validateHeaderName, validateHeaderValue } from 'node:http';
import { ControlError, ControlInput } from './control-input';
import type { Fault } from './model';

const withStatus = ['reason', 'body', 'contentType', 'headers'];
const flags = ['half', 'garbage', 'empty', 'hang', 'repeat'] as const;
const maxPauseMs = 86_400_000;
const kindNames = ['status', 'delayMs', 'drop', 'dripMs', ...flags];

/** Reads a fault in the form of the control API: one kind, with the fields of that kind. */
export function parseFault(object: object): Fault {
  const input = new ControlInput(object, [...kindNames, ...withStatus], 'fault.');
  const kinds = Object.keys(object).filter((name) => !withStatus.includes(name));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    throw new ControlError(`fault must have one of: ${kindNames.join(', ')}`);
  }
  if (kind !== 'status' && withStatus.some((name) => input.has(name))) {
    throw new ControlError(`fault.${withStatus.join(', fault.')} go with fault.status only`);
  }
  const flag = flags.find((name) => name === kind);
  if (flag !== undefined) {
    if (!input.flag(flag)) throw new ControlError(`fault.${flag} must be true; switch a fault off with "fault": null`);
    return { [flag]: true } as Fault;
  }
  if (kind === 'drop') return { drop: input.choice('drop', ['before', 'after', 'during']) };
  if (kind === 'delayMs') return { delayMs: input.number('delayMs', 0, maxPauseMs) };
  if (kind === 'dripMs') return { dripMs: input.number('dripMs', 0, maxPauseMs) };
  const status = input.number('status');
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new ControlError('fault.status must be a whole number from 200 to 599');
  }
  const fault: Fault = {
    status,
    ...input.presentTexts('reason', 'contentType'),
    ...(input.has('body') && { body: input.anyText('body') }),
    ...(input.has('headers') && { headers: input.textsByName('headers') }),
  };
  checkHeaders({ ...fault.headers, 'content-type': fault.contentType ?? '' });
  return fault;
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  try {
    for (const [name, value] of Object.entries(headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
  } catch (error) {
    throw new ControlError(`fault cannot be sent: ${error instanceof Error ? error.message : error}`);
  }
}
