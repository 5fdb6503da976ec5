import type { FlowNode } from '../test/node-red-process';

const tab: FlowNode = { id: 'tab', type: 'tab', label: 'bench' };
const place = { z: 'tab', x: 100, y: 100 };

/** Creates an account with the defaults of its form, apart from `properties`. */
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

function createProbe(id: string, nextIds: string[] = []): FlowNode {
  return { id, type: 'bench-probe', ...place, wires: [nextIds] };
}

function createFunction(id: string, func: string, wires: string[][]): FlowNode {
  return { id, type: 'function', ...place, func, outputs: wires.length, libs: [], wires };
}

function createHttpRequest(id: string, url: string, nextId: string): FlowNode {
  return { id, type: 'http request', ...place, method: 'POST', ret: 'txt', url, persist: true, wires: [[nextId]] };
}

function createXml(id: string, nextId: string): FlowNode {
  return { id, type: 'xml', ...place, property: 'payload', attr: '', chr: '', wires: [[nextId]] };
}

/** Function node: checks a message as `sms-send` does and formats the request body. */
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

/** Function node: reads the answer as `sms-send` does. */
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

/** Function node: reads one incoming message as `sms-in` does, but without a store or duplicate detection. */
const readIncoming = (apiKey: string) => `
const headers = { authorization: ${JSON.stringify(`Bearer ${apiKey}`)}, 'content-type': 'application/x-www-form-urlencoded' };
if (msg.statusCode === undefined) return [null, { headers, payload: '' }];
if (msg.statusCode !== 200) { if (msg.statusCode !== 204) node.error('status ' + msg.statusCode, msg); return; }
const record = Object.fromEntries(new URLSearchParams(msg.payload));
const isReply = (record.inReplyToId ?? '').trim() !== '';
const message = { payload: record.body, topic: record.from, sms: { ...record, isReply, via: 'poll' } };
return [message, { headers, payload: '' }];`;

/** Function node: reads an XMLv3 callback (§6.4) like `sms-callback-in`, but without a store or duplicate detection. */
const readCallback = `
const root = msg.payload['inbound-message'];
const recipient = root?.recipient?.[0];
if (!recipient) { msg.statusCode = 400; msg.payload = 'unreadable'; return [null, msg]; }
const record = { from: recipient.$.msisdn, body: recipient.body[0], inReplyToId: root.$.messageId, messageDate: root.$.receivedDate };
const isReply = (record.inReplyToId ?? '').trim() !== '';
const { req, res } = msg;
const message = { payload: record.body, topic: record.from, sms: { ...record, isReply, via: 'callback', query: req.query } };
return [message, { req, res, statusCode: 200, payload: 'OK' }];`;

/**
 * Creates two flows that send. The probe nodes start them: `package-probe` sends flow messages to `sms-send`, and
 * `hand-probe` sends them to core nodes.
 */
export function createSendFlows(baseUrl: string): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'package'),
    createProbe('package-probe', ['send']),
    { id: 'send', type: 'sms-send', ...place, account: 'account', wires: [['package-probe'], []] },
    createProbe('hand-probe', ['format']),
    createFunction('format', checkAndFormat('hand'), [['request']]),
    createHttpRequest('request', `${baseUrl}/api/3/sms/out`, 'xml'),
    createXml('xml', 'read'),
    createFunction('read', readDelivery, [['hand-probe']]),
  ];
}

/** Function node: appends each message to a file, and flushes the file before it passes the message on. */
const writeToFile = (file: string) => `
const handle = context.get('handle') ?? fs.openSync(${JSON.stringify(file)}, 'a');
context.set('handle', handle);
fs.write(handle, JSON.stringify({ topic: msg.topic, payload: msg.payload }) + '\\n', (failure) => {
  if (failure) { node.error(failure, msg); return; }
  fs.fsync(handle, (problem) => { if (problem) node.error(problem, msg); else node.send(msg); });
});`;

/**
 * Like {@link createSendFlows}, with stored messages. The core nodes flush each message to a file before they send it.
 */
export function createStoredSendFlows(baseUrl: string, file: string): FlowNode[] {
  const libs = [{ var: 'fs', module: 'fs' }];
  return [
    tab,
    createAccount(baseUrl, 'package'),
    createProbe('package-probe', ['send']),
    { id: 'send', type: 'sms-send', ...place, account: 'account', keep: true, wires: [['package-probe'], []] },
    createProbe('hand-probe', ['write']),
    { ...createFunction('write', writeToFile(file), [['format']]), libs },
    createFunction('format', checkAndFormat('hand'), [['request']]),
    createHttpRequest('request', `${baseUrl}/api/3/sms/out`, 'xml'),
    createXml('xml', 'read'),
    createFunction('read', readDelivery, [['hand-probe']]),
  ];
}

/**
 * Creates two flows that receive by polling: `sms-in`, and a loop of core nodes, which the node `hand-probe` starts.
 */
export function createReceiveFlows(baseUrl: string, parallelPolls: number): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'package', { parallelPolls }),
    { id: 'in', type: 'sms-in', ...place, account: 'account', wires: [['package-probe']] },
    createProbe('package-probe'),
    createProbe('hand-probe', ['read']),
    createHttpRequest('request', `${baseUrl}/api/1/sms/in`, 'read'),
    createFunction('read', readIncoming('hand'), [['hand-probe'], ['request']]),
  ];
}

/** Creates two flows that receive callbacks: `sms-callback-in` at `/package`, and core nodes at `/hand`. */
export function createCallbackFlows(baseUrl: string): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'package'),
    {
      id: 'callback',
      type: 'sms-callback-in',
      ...place,
      account: 'account',
      path: '/package',
      wires: [['package-probe'], []],
    },
    createProbe('package-probe'),
    { id: 'http', type: 'http in', ...place, url: '/hand', method: 'post', upload: false, wires: [['xml']] },
    createXml('xml', 'read'),
    createFunction('read', readCallback, [['hand-probe'], ['answer']]),
    { id: 'answer', type: 'http response', ...place, statusCode: '', headers: {}, wires: [] },
    createProbe('hand-probe'),
  ];
}

/** Creates two flows of this package that send and receive at the same time. */
export function createSoakFlows(baseUrl: string): FlowNode[] {
  return [
    tab,
    createAccount(baseUrl, 'package', { parallelPolls: 8 }),
    { id: 'in', type: 'sms-in', ...place, account: 'account', wires: [['in-probe']] },
    createProbe('in-probe'),
    createProbe('out-probe', ['send']),
    { id: 'send', type: 'sms-send', ...place, account: 'account', wires: [['out-probe'], []] },
  ];
}

/** An empty tab. */
export const noFlows: FlowNode[] = [tab];
