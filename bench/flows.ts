import type { FlowNode } from '../test/node-red-process';

const tab: FlowNode = { id: 'tab', type: 'tab', label: 'bench' };
const place = { z: 'tab', x: 100, y: 100 };

/** The account of this package, with the defaults of its form but for what a row changes. */
function createAccount(baseUrl: string, apiKey: string, properties: object = {}): FlowNode {
  return {
    id: 'account',
    type: 'sms-account',
    baseUrl,
    authType: 'bearer',
    pause: 0,
    credentials: { apiKey },
    ...properties,
  };
}

function createProbe(id: string, next: string[] = []): FlowNode {
  return { id, type: 'bench-probe', ...place, wires: [next] };
}

function createFunction(id: string, func: string, wires: string[][]): FlowNode {
  return { id, type: 'function', ...place, func, outputs: wires.length, libs: [], wires };
}

function createHttpRequest(id: string, url: string, next: string): FlowNode {
  return { id, type: 'http request', ...place, method: 'POST', ret: 'txt', url, persist: true, wires: [[next]] };
}

function createXml(id: string, next: string): FlowNode {
  return { id, type: 'xml', ...place, property: 'payload', attr: '', chr: '', wires: [[next]] };
}

/** Checks a message as `sms-send` does and makes the form that it posts. */
const checkAndFormat = (apiKey: string) => `
const recipients = new Set();
for (const item of Array.isArray(msg.topic) ? msg.topic : String(msg.topic ?? '').split(/[\\s,;]+/)) {
  const text = String(item).trim();
  if (text === '') continue;
  if (text.lastIndexOf('+') > 0) { node.error('a + that is not in front', msg); return; }
  if (/^\\+?[\\d()./\\s-]*$/.test(text) && /\\d/.test(text)) {
    const digits = text.replace(/[()./\\s+-]/g, '');
    if (!/^[1-9]\\d{6,14}$/.test(digits)) { node.error('no number', msg); return; }
    recipients.add(digits);
  } else if (/\\s/.test(text)) { node.error('a space in a name', msg); return; }
  else recipients.add(text);
}
if (recipients.size === 0) { node.error('no recipient', msg); return; }
const body = Buffer.isBuffer(msg.payload) ? msg.payload.toString() : String(msg.payload ?? '');
if (body.trim() === '') { node.error('no text', msg); return; }
const characters = [...body];
if (characters.length > 480) { node.error('too long', msg); return; }
const basic = ${JSON.stringify('@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà')};
const extension = ${JSON.stringify('\f^{}\\[~]|€')};
let units = 0;
let gsm = true;
for (const character of characters) {
  if (basic.includes(character)) units += 1;
  else if (extension.includes(character)) units += 2;
  else { gsm = false; break; }
}
if (!gsm) units = body.length;
const parts = gsm ? (units <= 160 ? 1 : Math.ceil(units / 153)) : units <= 70 ? 1 : Math.ceil(units / 67);
msg.draft = { topic: msg.topic, payload: msg.payload, to: [...recipients], parts, encoding: gsm ? 'GSM-7' : 'UCS-2' };
const form = new URLSearchParams([['to', msg.draft.to.join(' ')], ['body', body]]);
if (!gsm) form.append('contentType', 'text/plain; charset=UTF-16');
msg.payload = form.toString();
msg.headers = { authorization: ${JSON.stringify(`Bearer ${apiKey}`)}, 'content-type': 'application/x-www-form-urlencoded' };
return msg;`;

/** Reads the outcome as `sms-send` does. */
const readDelivery = `
const { draft } = msg;
if (msg.statusCode !== 200) { node.error('status ' + msg.statusCode, msg); return; }
const root = msg.payload['outbound-message-delivery'];
if (!root) { node.error('unreadable', msg); return; }
if (root.$.isError === 'true') { node.error('refused ' + root.$.errorCode, msg); return; }
const recipients = (root.recipient ?? []).map(({ $ }) => {
  const result = { msisdn: $.msisdn, isError: $.isError === 'true' };
  if ($.errorCode !== undefined) result.errorCode = Number($.errorCode);
  if ($.errorMessage !== undefined) result.errorMessage = $.errorMessage;
  return result;
});
const failed = recipients.filter(({ isError }) => isError);
const names = new Set(failed.map(({ msisdn }) => msisdn));
const accepted = draft.to.filter((item) => !names.has(item));
msg.topic = draft.topic;
msg.payload = draft.payload;
msg.sms = { messageId: root.$.messageId, statusCode: 200, isError: false, recipients, accepted, failed, encoding: draft.encoding, parts: draft.parts };
delete msg.draft;
delete msg.headers;
node.status({ fill: 'green', shape: 'dot', text: 'sent' });
return msg;`;

/** Reads one incoming message as `sms-in` does, but neither keeps it nor knows whether it came before. */
const readIncoming = (apiKey: string) => `
const headers = { authorization: ${JSON.stringify(`Bearer ${apiKey}`)}, 'content-type': 'application/x-www-form-urlencoded' };
if (msg.statusCode === undefined) return [null, { headers, payload: '' }];
if (msg.statusCode !== 200) { if (msg.statusCode !== 204) node.error('status ' + msg.statusCode, msg); return; }
const record = Object.fromEntries(new URLSearchParams(msg.payload));
const isReply = (record.inReplyToId ?? '').trim() !== '';
const message = { payload: record.body, topic: record.from, sms: { ...record, isReply, via: 'poll' } };
return [message, { headers, payload: '' }];`;

/** Reads one callback in XMLv3 (§6.4) as `sms-callback-in` does, but neither keeps it nor knows whether it came before. */
const readCallback = `
const root = msg.payload['inbound-message'];
const recipient = root?.recipient?.[0];
if (!recipient) { msg.statusCode = 400; msg.payload = 'unreadable'; return [null, msg]; }
const record = { from: recipient.$.msisdn, body: recipient.body[0], inReplyToId: root.$.messageId, messageDate: root.$.receivedDate };
const isReply = (record.inReplyToId ?? '').trim() !== '';
const { req, res } = msg;
const message = { payload: record.body, topic: record.from, sms: { ...record, isReply, via: 'callback', query: req.query } };
return [message, { req, res, statusCode: 200, payload: 'OK' }];`;

/** Sends: this package from `sms-probe`, the rival from `rival-probe`. */
export function createSendFlows(baseUrl: string): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'sms'),
    createProbe('sms-probe', ['send']),
    { id: 'send', type: 'sms-send', ...place, account: 'account', wires: [['sms-probe'], []] },
    createProbe('rival-probe', ['format']),
    createFunction('format', checkAndFormat('rival'), [['request']]),
    createHttpRequest('request', `${baseUrl}/api/3/sms/out`, 'xml'),
    createXml('xml', 'read'),
    createFunction('read', readDelivery, [['rival-probe']]),
  ];
}

/** Limits that are never reached. */
export const counted = { perHandset: 1_000, perDay: 100_000_000 };

/** Those, a list of nobody, a prefix that all numbers have, and quiet hours on the other side of the day. */
export function createConsent(): object {
  const hour = new Date().getUTCHours();
  const at = (hours: number) => `${String((hour + hours) % 24).padStart(2, '0')}:00`;
  return { ...counted, optOut: true, prefixes: '64', quietFrom: at(10), quietTo: at(14), timeZone: 'UTC' };
}

/** Sends from `on-probe` by an account with the settings `on`, and from `off-probe` by one with the settings `off`. */
export function createTwoSendFlows(baseUrl: string, on: object, off: object): FlowNode[] {
  return [
    tab,
    ...Object.entries({ on, off }).flatMap(([name, settings]): FlowNode[] => [
      createAccount(baseUrl, name, { id: `${name}-account`, ...settings }),
      createProbe(`${name}-probe`, [`${name}-send`]),
      { id: `${name}-send`, type: 'sms-send', ...place, account: `${name}-account`, wires: [[`${name}-probe`], []] },
    ]),
  ];
}

/** Writes a text to a file and flushes it before it goes on, as a flow of core nodes would keep it. */
const writeFirst = (file: string) => `
const handle = context.get('handle') ?? fs.openSync(${JSON.stringify(file)}, 'a');
context.set('handle', handle);
fs.write(handle, JSON.stringify({ topic: msg.topic, payload: msg.payload }) + '\\n', (failure) => {
  if (failure) { node.error(failure, msg); return; }
  fs.fsync(handle, (problem) => { if (problem) node.error(problem, msg); else node.send(msg); });
});`;

/** Sends from `on-probe` what is kept, from `off-probe` what is not, and from `rival-probe` what was written to a file first. */
export function createKeptSendFlows(baseUrl: string, file: string): FlowNode[] {
  const libs = [{ var: 'fs', module: 'fs' }];
  return [
    tab,
    createAccount(baseUrl, 'sms'),
    createProbe('on-probe', ['on-send']),
    { id: 'on-send', type: 'sms-send', ...place, account: 'account', keep: true, wires: [['on-probe'], []] },
    createProbe('off-probe', ['off-send']),
    { id: 'off-send', type: 'sms-send', ...place, account: 'account', wires: [['off-probe'], []] },
    createProbe('rival-probe', ['write']),
    { ...createFunction('write', writeFirst(file), [['format']]), libs },
    createFunction('format', checkAndFormat('rival'), [['request']]),
    createHttpRequest('request', `${baseUrl}/api/3/sms/out`, 'xml'),
    createXml('xml', 'read'),
    createFunction('read', readDelivery, [['rival-probe']]),
  ];
}

/** Keeps so many texts that cannot leave: nobody listens where the service should be. */
export function createWaitingFlows(count: number): FlowNode[] {
  return [
    tab,
    createAccount('http://127.0.0.1:1', 'sms', { store: 'memory', queueLimit: count + 1 }),
    createProbe('probe', ['send']),
    { id: 'send', type: 'sms-send', ...place, account: 'account', keep: true, wires: [[], []] },
  ];
}

/** Receives by polling: this package to `sms-probe`, the rival, which `rival-probe` starts, to `rival-probe`. */
export function createReceiveFlows(baseUrl: string, parallelPolls: number): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'sms', { parallelPolls }),
    { id: 'in', type: 'sms-in', ...place, account: 'account', wires: [['sms-probe']] },
    createProbe('sms-probe'),
    createProbe('rival-probe', ['read']),
    createHttpRequest('request', `${baseUrl}/api/1/sms/in`, 'read'),
    createFunction('read', readIncoming('rival'), [['rival-probe'], ['request']]),
  ];
}

/** Receives by polling with so many nodes on one account; the first of them leads to `sms-probe`. */
export function createManyReceivers(baseUrl: string, nodes: number): FlowNode[] {
  const receivers = Array.from(
    { length: nodes },
    (_, index): FlowNode => ({
      id: `in-${index}`,
      type: 'sms-in',
      ...place,
      account: 'account',
      wires: [[index === 0 ? 'sms-probe' : 'other-probe']],
    }),
  );
  const probes = [createProbe('sms-probe'), createProbe('other-probe')];
  return [tab, createAccount(baseUrl, 'sms', { parallelPolls: 8 }), ...receivers, ...probes];
}

/** Receives callbacks at `/sms` with this package, and at `/rival`. */
export function createCallbackFlows(baseUrl: string): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'sms'),
    { id: 'callback', type: 'sms-callback-in', ...place, account: 'account', path: '/sms', wires: [['sms-probe'], []] },
    createProbe('sms-probe'),
    { id: 'http', type: 'http in', ...place, url: '/rival', method: 'post', upload: false, wires: [['xml']] },
    createXml('xml', 'read'),
    createFunction('read', readCallback, [['rival-probe'], ['answer']]),
    { id: 'answer', type: 'http response', ...place, statusCode: '', headers: {}, wires: [] },
    createProbe('rival-probe'),
  ];
}

/** Sends and receives at once. */
export function createSoakFlows(baseUrl: string): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'sms', { parallelPolls: 8 }),
    { id: 'in', type: 'sms-in', ...place, account: 'account', wires: [['in-probe']] },
    createProbe('in-probe'),
    createProbe('out-probe', ['send']),
    { id: 'send', type: 'sms-send', ...place, account: 'account', wires: [['out-probe'], []] },
  ];
}

/** So many accounts, each of which polls incoming messages and status updates. */
export function createIdleFlows(baseUrl: string, accounts: number, pauseSeconds: number): FlowNode[] {
  const perAccount = Array.from({ length: accounts }, (_, index): FlowNode[] => [
    { ...createAccount(baseUrl, `idle-${index}`, { pause: pauseSeconds }), id: `account-${index}` },
    { id: `in-${index}`, type: 'sms-in', ...place, account: `account-${index}`, wires: [[]] },
    { id: `status-${index}`, type: 'sms-status', ...place, account: `account-${index}`, wires: [[]] },
  ]);
  return [tab, ...perAccount.flat()];
}

/** Nothing at all. */
export const noFlows: FlowNode[] = [tab];
