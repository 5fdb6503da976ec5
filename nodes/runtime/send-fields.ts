import { randomUUID } from 'node:crypto';
import type { Node, NodeAPI, NodeDef } from 'node-red';
import {
  type CheckedDraft,
  checkDraft,
  type Draft,
  isBlank,
  parseAnswers,
  parseAt,
  refuseSenderName,
  type SendOptions,
  SmsError,
} from '../../src';
import { isEnv, isInRange, limits, parseKey, type Range } from '../limits';
import { type CallbackNode, isCallbackNode } from './callback-address';
import type { SmsMessage } from './messages';
import { evaluate, parseFlag, parseNumber, parseText, type TypedInput } from './settings';
import { fillTemplate } from './template';

/** The nodes that send. */
export type SenderType = 'sms-send' | 'sms-ask';

/** The typed properties that both nodes share, each with its default type and value. */
const sharedDefaults = {
  to: ['msg', 'topic'],
  body: ['msg', 'payload'],
  from: ['str', ''],
  messageId: ['none', ''],
  fragmentationLimit: ['num', ''],
  contentType: ['auto', ''],
  callbackUrl: ['str', ''],
  callbackStatusUrl: ['str', ''],
  once: ['none', ''],
  replace: ['none', ''],
  remember: ['none', ''],
  at: ['none', ''],
} as const;

type Field = keyof typeof sharedDefaults | 'report' | 'wait' | 'again';

type Defaults = Readonly<Partial<Record<Field, readonly [type: string, value: string]>>>;

const defaultsOf: Readonly<Record<SenderType, Defaults>> = {
  'sms-send': { ...sharedDefaults, report: ['none', ''] },
  'sms-ask': { ...sharedDefaults, messageId: ['uuid', ''], wait: ['num', '60'], again: ['str', ''] },
};

/** The properties that hold the id of an sms-callback-in node if the type of a callback is `node`. */
const references = { callbackUrl: 'callbackNode', callbackStatusUrl: 'callbackStatusNode' } as const;

/** Names of the properties without an entry in `defaultsOf`. */
type PlainSetting =
  | 'retries'
  | 'retryUncertain'
  | 'resolve'
  | 'keep'
  | 'unlimited'
  | 'essential'
  | 'callbackNode'
  | 'callbackStatusNode'
  | 'answers'
  | `${'expire' | 'priority'}${'' | 'Type'}`;

/** The configuration of `sms-send` or `sms-ask`. */
export type SendConfig = NodeDef & { account?: string } & { [Key in Field | `${Field}Type` | PlainSetting]?: unknown };

/** Settings that do not depend on the input. */
interface FixedSettings
  extends Pick<SendOptions, 'retries' | 'retryUncertain' | 'resolveMs' | 'unlimited' | 'answers'> {
  isKept: boolean;
  isEssential: boolean;
}

/** Values of the fields for one message. */
type Values = Draft & { [Key in Field]?: unknown };

/** A checked message with its options. */
export interface SendOrder extends CheckedDraft {
  options: SendOptions;
}

/** The settings of an account that apply to a message. */
export interface AccountFacts {
  maxLength: number | undefined;
  timeZone: string;
}

/**
 * Stands for the recipient of the second message (option `again`). The real recipient is known only when an unclear
 * reply arrives.
 */
const handsetPlaceholder = 'handset';

const maxRememberedBytes = 64 * 1024;
const minuteMs = 60_000;

/** Reads the message that a node sends for each input. */
export class SendFields {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #config: SendConfig;
  readonly #type: SenderType;
  /** Values that are the same for every message. */
  readonly #constants: Values = { to: undefined, body: undefined };
  /** Fields that are evaluated for each message, because their values can differ. */
  readonly #variables: readonly TypedInput<Field>[];
  readonly #usedFields: ReadonlySet<Field>;
  /**
   * A field that still contains `${NAME}`, because this variable is not set. Every input fails then, so that the
   * characters `${NAME}` are never sent or used as a key.
   */
  readonly #unsetField: TypedInput<Field> | undefined;
  readonly #isAutomatic: boolean;
  #settings: FixedSettings | undefined;

  constructor(RED: NodeAPI, node: Node, config: SendConfig, type: SenderType) {
    this.#RED = RED;
    this.#node = node;
    this.#config = config;
    this.#type = type;
    const defaults = Object.entries(defaultsOf[type]) as [Field, readonly [string, string]][];
    const inputs = defaults.map(([field, byDefault]) => readField(config, field, byDefault));
    this.#variables = inputs.filter((input) => !isConstant(input));
    for (const input of inputs) if (isConstant(input)) this.#constants[input.field] = constantOf(input);
    this.#unsetField = inputs.find(({ type, value }) => (type === 'str' || type === 'template') && isEnv(value));
    this.#isAutomatic = inputs.some(({ field, type }) => field === 'contentType' && /^(?:auto|gsm)$/.test(type));
    this.#usedFields = new Set(inputs.filter(({ type }) => type !== 'none').map(({ field }) => field));
  }

  /**
   * Whether the node needs the store, because its messages or data about them must survive a restart.
   *
   * @throws SmsError `SMS_CONFIG`
   */
  get usesStore(): boolean {
    const { isKept } = this.parseSettings();
    if (isKept || this.#type === 'sms-ask') return true;
    return (['once', 'remember', 'report', 'at'] as const).some((field) => this.#usedFields.has(field));
  }

  /**
   * Reads the settings that do not depend on the input.
   *
   * @throws SmsError `SMS_CONFIG`
   */
  parseSettings(): FixedSettings {
    const { retries, retryUncertain, resolve, unlimited, essential, keep, answers } = this.#config;
    const ranges = limits['sms-send'];
    this.#settings ??= {
      retries: parseNumber('retries', retries, ranges.retries),
      retryUncertain: parseFlag('retryUncertain', retryUncertain, false),
      resolveMs: parseNumber('resolve', resolve, ranges.resolve) * 1_000,
      unlimited: parseFlag('unlimited', unlimited, false),
      isKept: parseFlag('keep', keep, false),
      isEssential: parseFlag('essential', essential, false),
      ...(this.#type === 'sms-ask' && { answers: parseAnswers(answers) }),
    };
    return this.#settings;
  }

  /**
   * Reads the fields of a flow message.
   *
   * @throws SmsError `SMS_CONFIG`, or `SMS_INPUT` whose `field` names the first field at fault
   */
  async read(message: SmsMessage, { maxLength, timeZone }: AccountFacts): Promise<SendOrder> {
    const { isKept, isEssential, retries, retryUncertain, resolveMs, unlimited, answers } = this.parseSettings();
    if (this.#unsetField) parseText(this.#unsetField.field, this.#unsetField.value);
    const values: Values = { ...this.#constants };
    for (const input of this.#variables) {
      values[input.field] = await this.#evaluate(input, message);
    }
    // `auto` and `gsm` are choices of the form and not content types, so an input cannot set them.
    if (!this.#isAutomatic && /^(?:auto|gsm)$/.test(String(values.contentType))) {
      throw new SmsError('contentType', { field: 'contentType' });
    }
    refuseSenderName(values.to, Object(message.sms).from);
    const draft = checkDraft(values, maxLength);
    const priority = await this.#number('priority', message);
    const options: SendOptions = { retries, retryUncertain, resolveMs, priority, unlimited };
    if (isEssential) options.essential = true;
    const { once, replace, remember, report } = values;
    const at = this.#usedFields.has('at') ? parseAt(values.at, timeZone, Date.now()) : undefined;
    if (isKept || at !== undefined) {
      const minutes = await this.#number('expire', message);
      const keep = { expireMs: minutes === 0 ? undefined : minutes * minuteMs };
      if (isKept) options.keep = keep;
      if (at !== undefined) options.at = { time: at, keep };
    }
    if (this.#usedFields.has('once')) options.once = parseKey('once', once);
    if (this.#usedFields.has('replace')) options.replaceKey = parseKey('replace', replace);
    if (this.#usedFields.has('remember')) options.remember = { value: parseRemembered(remember) };
    if (!isBlank(report)) options.reportMs = parseInput('report', report, limits['sms-send'].report) * 60 * minuteMs;
    if (answers) {
      const { waitMs, again } = this.#readAsk(values, maxLength);
      Object.assign(options, { answers, waitMs });
      if (again) options.again = isKept && options.keep ? { ...again, keep: options.keep } : again;
    }
    return { ...draft, options };
  }

  /** Whether an input withdraws a stored message instead of sending one. */
  isReset(message: SmsMessage): boolean {
    return this.#usedFields.has('replace') && Object.hasOwn(message, 'reset');
  }

  /**
   * Reads only the key of `replace`.
   *
   * @throws SmsError `SMS_INPUT` with the field `replace`
   */
  async readReplaceKey(message: SmsMessage): Promise<string> {
    if (this.#unsetField?.field === 'replace') parseText('replace', this.#unsetField.value);
    const input = this.#variables.find(({ field }) => field === 'replace');
    return parseKey('replace', input ? await this.#evaluate(input, message) : this.#constants.replace);
  }

  /** Reads how long to wait for a reply, and the second message (option `again`) that follows an unclear reply. */
  #readAsk(values: Values, maxLength: number | undefined): Pick<SendOptions, 'waitMs' | 'again'> {
    const { wait, again } = values;
    const range = limits['sms-ask'].wait;
    const minutes = isBlank(wait) ? range.byDefault : parseInput('wait', wait, range);
    const waitMs = minutes * minuteMs;
    if (isBlank(again)) return { waitMs };
    try {
      const { message, ...draft } = checkDraft(
        { ...values, to: handsetPlaceholder, body: again, messageId: '' },
        maxLength,
      );
      return { waitMs, again: { message, ...draft } };
    } catch (error) {
      throw error instanceof SmsError && error.field === 'body' ? error.with({ field: 'again' }) : error;
    }
  }

  /** Reads a number within the range of a field. */
  async #number(field: 'priority' | 'expire', message: SmsMessage): Promise<number> {
    const { [field]: value, [`${field}Type` as const]: type } = this.#config;
    const range = limits['sms-send'][field];
    const input = { field, value, type: isBlank(type) ? 'num' : String(type) };
    const number = await evaluate(this.#RED, this.#node, input, message);
    return isBlank(number) ? range.byDefault : parseInput(field, number, range);
  }

  #evaluate(input: TypedInput, message: SmsMessage): unknown {
    const { field, type, value } = input;
    if (type === 'uuid') return randomUUID();
    if (type === 'node') return this.#callbackUrl(field as keyof typeof references);
    if (type === 'mailto') return parseMailto(field, value);
    if (type === 'template') return fillTemplate(this.#RED, this.#node, { field, value: String(value) }, message);
    return evaluate(this.#RED, this.#node, input, message);
  }

  #callbackUrl(field: keyof typeof references): string {
    const node = this.#RED.nodes.getNode(String(this.#config[references[field]] ?? '')) as CallbackNode | null;
    if (!isCallbackNode(node)) throw new SmsError('callbackNodeMissing', { field, params: { field } });
    try {
      const url = node.callbackUrl();
      if (url) return url;
    } catch (error) {
      throw error instanceof SmsError ? error.with({ field }) : error;
    }
    throw new SmsError('callbackNodeUrlMissing', { field, params: { field } });
  }
}

function isConstant({ type, value }: TypedInput): boolean {
  if (['none', 'auto', 'gsm', 'str', 'num'].includes(type)) return true;
  return !['uuid', 'node', 'date'].includes(type) && (value === undefined || value === '');
}

function constantOf({ field, type, value }: TypedInput): unknown {
  if (type === 'none') return undefined;
  if (type === 'auto' || type === 'gsm') return type;
  if (type === 'num' && (field === 'remember' || field === 'at')) return isBlank(value) ? undefined : Number(value);
  return value;
}

function readField(
  config: SendConfig,
  field: Field,
  [type, value]: readonly [type: string, value: string],
): TypedInput<Field> {
  const savedValue = config[field] ?? undefined;
  const savedType = config[`${field}Type`];
  // A flow that was written manually can lack the type of a value. If the value is blank or equals the default, the
  // default type applies. Otherwise, the value is text.
  const defaultType = savedValue === undefined || savedValue === '' || savedValue === value ? type : 'str';
  const chosenType = typeof savedType === 'string' && savedType !== '' ? savedType : defaultType;
  // The default value belongs to the default type. With another type, for example text, a default such as a property name
  // would be sent as text, so a missing value stays empty.
  return { field, value: savedValue ?? (chosenType === type ? value : ''), type: chosenType };
}

function parseMailto(field: string, value: unknown): object | undefined {
  if (isBlank(value)) return undefined;
  let mail = value;
  try {
    if (typeof value === 'string') mail = JSON.parse(value);
  } catch {}
  if (typeof mail !== 'object' || mail === null) throw new SmsError('mailto', { field, params: { field } });
  return mail;
}

/** Copies a value as JSON. The copy has only the parts that JSON can represent. */
function parseRemembered(value: unknown): unknown {
  const field = 'remember';
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {}
  if (text === undefined) throw new SmsError('rememberType', { field });
  if (Buffer.byteLength(text) > maxRememberedBytes) throw new SmsError('rememberTooLarge', { field });
  return JSON.parse(text);
}

/** @throws SmsError `SMS_INPUT` with the field if the value is not a number within the range */
function parseInput(field: 'wait' | 'report' | 'priority' | 'expire', value: unknown, range: Range): number {
  if (isInRange(value, range)) return Number(value);
  const { min, max, whole } = range;
  throw new SmsError(whole ? 'inputWhole' : 'inputNumber', { field, params: { field, min, max } });
}
