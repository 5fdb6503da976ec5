import mustache from 'mustache';
import type { Node, NodeAPI } from 'node-red';
import { SmsError } from '../../src';
import type { SmsMessage } from './messages';
import { evaluate } from './settings';

/** `flow.name`, `global.name` or `env.name`. The name of a context store can follow: `flow[store].name`. */
const contextName = /^(?:(flow|global)(?:\[(\w+)\])?|(env))\.(.+)$/;

/**
 * Fills in a Mustache template from a flow message, with the rules of the core node *template*:
 * - The prefixes `flow.`, `global.` and `env.` read context and environment variables.
 * - A missing variable is empty.
 *
 * Values are not HTML-escaped.
 *
 * @param field property that holds the template, for errors
 * @throws SmsError `SMS_INPUT` with the field, if the template cannot be read or a context store fails
 */
export async function fillTemplate(
  RED: NodeAPI,
  node: Node,
  { field, value }: { field: string; value: string },
  message: SmsMessage,
): Promise<string> {
  try {
    const values = new Map<string, unknown>();
    for (const name of namesOf(mustache.parse(value))) {
      const [, type, store, env, key] = contextName.exec(name) ?? [];
      if (key === undefined) continue;
      const source = { field, type: env ?? type ?? '', value: store === undefined ? key : `#:(${store})::${key}` };
      values.set(name, await evaluate(RED, node, source, message));
    }
    return mustache.render(value, new MessageContext(message, undefined, values), undefined, { escape: String });
  } catch (error) {
    if (error instanceof SmsError) throw error;
    const detail = error instanceof Error ? error.message : 'unreadable';
    throw new SmsError('template', { field, params: { field, detail } });
  }
}

type Token = ReturnType<typeof mustache.parse>[number];

/** Returns the names of all variables and sections of a template. */
function namesOf(tokens: readonly Token[]): string[] {
  return tokens.flatMap(([type, name, , , inner]) => [
    ...(type === 'text' ? [] : [name]),
    ...(Array.isArray(inner) ? namesOf(inner as Token[]) : []),
  ]);
}

/** Looks up names in the flow message, then in context and environment variables. */
class MessageContext extends mustache.Context {
  readonly #values: ReadonlyMap<string, unknown>;

  constructor(view: unknown, parent: mustache.Context | undefined, values: ReadonlyMap<string, unknown>) {
    super(view, parent);
    this.#values = values;
  }

  override push(view: unknown): MessageContext {
    return new MessageContext(view, this, this.#values);
  }

  override lookup(name: string): unknown {
    return super.lookup(name) ?? this.#values.get(name) ?? '';
  }
}
