import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const examplesFolder = join(dirname(__dirname), 'examples');
/** How far what stands right of a node that receives makes room for the switch that follows it. */
const room = 180;

export interface FlowNode {
  id: string;
  type: string;
  [property: string]: unknown;
}

/** How an example is tried with one click. Expressions of a function node see `msg`, and `from`, a handset that was sent to. */
interface Trial {
  /** What the comment of the flow says. */
  how: string;
  /** A further button, which has something asked of the simulator or of Node-RED, and then passes it on to `next`. */
  click?: { name: string; url: string; payload(handset: string): object; next?: string };
  /** What the handsets do that were sent to by `node`, three seconds later. */
  answers?: { node: string; payload: string; url?: string };
}

const simulatorUrl = '$env("SMS_SIMULATOR_URL")';

function writes(body: string): Pick<Trial, 'how' | 'click'> {
  const url = `${simulatorUrl} & "/control/receive"`;
  return {
    how: 'press "A handset writes"',
    click: { name: 'A handset writes', url, payload: (from) => ({ from, to: '642100000001', body }) },
  };
}

const trials: Readonly<Record<string, Trial>> = {
  'Send a text': { how: 'press "Send"' },
  'Auto-reply': writes('Are you open today?'),
  'Answer by keyword': writes('Hours?'),
  'Answer once': writes('Are you there?'),
  'Opt-out that is remembered': {
    how: 'press "News"; one handset answers STOP, so that the next "News" goes to the other',
    answers: { node: 'send the news', payload: "from.endsWith('1') && { from, body: 'STOP' }" },
  },
  'Appointment reminder with YES or NO': {
    how: 'press "Remind"; the handset answers YES',
    answers: { node: 'ask', payload: "{ from, body: 'YES' }" },
  },
  'Survey of three questions': {
    how: 'press "Start"; the handsets answer',
    answers: { node: 'ask', payload: "{ from, body: ['5', 'The breakfast', 'Yes'][msg.answers.length] }" },
  },
  'One-time code that expires': {
    how: 'press "Sign in"; the handset sends the code',
    answers: { node: 'ask for the code', payload: '{ from, body: msg.code }' },
  },
  'One-time code for a login': {
    how: 'press "A visitor logs in", or open /sms-login yourself',
    click: {
      name: 'A visitor logs in',
      url: '$env("SMS_NODE_RED_URL") & "/sms-login/code"',
      payload: (number) => ({ number }),
    },
    answers: {
      node: 'send the code',
      url: "env.get('SMS_NODE_RED_URL') + '/sms-login'",
      payload: '{ number: from, code: msg.payload.slice(0, 6) }',
    },
  },
  'An alarm that survives an outage and a restart': { how: 'press "Alarm"' },
  'Alarm from MQTT with quiet hours': {
    how: 'press "Urgent alarm", or "Alarm", which waits once the account has quiet hours',
  },
  'On-call rota until someone answers OK': {
    how: 'press "Alarm"; the first one answers OK',
    answers: { node: 'ask', payload: "{ from, body: 'OK' }" },
  },
  'On-call rota by weekday': {
    how: 'press "Alarm"; who is on duty answers OK',
    answers: { node: 'ask', payload: "{ from, body: 'OK' }" },
  },
  'Track delivery and raise an alarm': { how: 'press "Send an order"' },
  'Send to a list from a CSV': { how: 'press "Send to all"' },
  'Send from a spreadsheet and report who got it': { how: 'press "Send"' },
  'Dashboard chat': { ...writes('Is anybody there?'), how: 'open /dashboard/sms, and press "A handset writes"' },
  'Callbacks instead of polling': {
    how: 'press "Ask"; the handset answers YES',
    answers: { node: 'sms-send', payload: "{ from, body: 'YES' }" },
  },
  'Store every message before acknowledging it': writes('Please keep this.'),
  'Log what was sent': { how: 'press "Read now"' },
  'Watch the accounts and raise an alarm': { how: 'press "Check now"' },
  'Reminder a day before': { how: 'press "Appointment"; the reminder leaves in ten seconds' },
  'Warn when the balance is low': {
    how: 'press "The balance falls"',
    click: {
      name: 'The balance falls',
      url: `${simulatorUrl} & "/control/balance"`,
      payload: () => ({ balance: 42 }),
      next: 'sms-feed',
    },
  },
};

/**
 * The flow *Try it*, and a tab for each example, on the account of the simulator. Every tab has handsets of its own, by the
 * number of the example, and answers nobody else. An example whose nodes are not there is left out.
 * @param hasPackage Whether a package with nodes is installed.
 */
export function createFlows(hasPackage: (name: string) => boolean): FlowNode[] {
  const first = readFlow(join(__dirname, 'first-flow.json'));
  const account = first.find(({ type }) => type === 'sms-account');
  if (!account) throw new Error('The first flow has no account.');
  const examples = readdirSync(examplesFolder)
    .sort()
    .map((file) => ({ file, nodes: readFlow(join(examplesFolder, file)) }))
    .filter(({ nodes }) => modulesOf(nodes).every(hasPackage));
  // What polling has received first would not come by callback, so that this account is another to Node-RED.
  const callbacks = {
    ...account,
    id: idOf('callbacks', account),
    name: 'Simulator (for example 19)',
    authType: 'basic',
    // It would poll for a STOP, and take what the other tabs are to get.
    optOut: false,
  };
  const adapted = examples.map(({ file, nodes }) => {
    const isCalledBack = nodes.some(({ type }) => type === 'sms-callback-in');
    const { id } = isCalledBack ? callbacks : account;
    return adaptExample(
      file,
      nodes.map((node) => onAccount(node, id)),
    );
  });
  return [...first, callbacks, ...adapted.flat()];
}

function onAccount(node: FlowNode, account: string): FlowNode {
  return node.account === undefined ? node : { ...node, account };
}

function readFlow(file: string): FlowNode[] {
  return JSON.parse(readFileSync(file, 'utf8')) as FlowNode[];
}

/** The packages that an example names for the editor to install. */
function modulesOf(nodes: FlowNode[]): string[] {
  return nodes.flatMap(({ type, modules }) => (type === 'global-config' ? Object.keys(modules as object) : []));
}

function adaptExample(file: string, example: FlowNode[]): FlowNode[] {
  const handsets = `6421555${file.slice(0, 2)}`;
  const trial = trials[file.replace(/^\d\d (.*)\.json$/, '$1')];
  const nodes = example
    .filter(({ type }) => type !== 'sms-account' && type !== 'global-config')
    .map((node) => ({
      ...node,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED fills it in
      ...(node.type === 'sms-callback-in' && { publicUrl: '${SMS_NODE_RED_URL}' }),
      // There is no broker.
      ...(node.type === 'mqtt in' && { d: true }),
      ...(asksItself(node) && { url: '' }),
      ...(node.type === 'inject' && example.some(asksItself) && { props: [...(node.props as object[]), ownState] }),
      ...(node.type === 'comment' && trial && explain(node, trial)),
    }));
  const heard = nodes.filter(({ type }) => type === 'sms-in').reduce((all, node) => hear(all, node, handsets), nodes);
  return trial ? [...heard, ...createTrial(heard, trial, handsets)] : heard;
}

/** Whether a node asks Node-RED what goes on in the accounts, at the port that is usual. */
function asksItself({ type, url }: FlowNode): boolean {
  return type === 'http request' && String(url).endsWith('/sms-account/state');
}

const ownState = { p: 'url', v: '$env("SMS_NODE_RED_URL") & "/sms-account/state"', vt: 'jsonata' };

function explain({ name, info }: FlowNode, { how }: Trial): object {
  const [title] = String(name).split(':');
  const [what] = String(info).split('\n');
  const label = `${title}: ${how}`;
  return {
    name: label,
    // Its left edge stays about where it is.
    x: 70 + 4 * label.length,
    info: [what, '- Nothing to set: the flow runs on the simulator.', `- To try it: ${how}.`].join('\n'),
  };
}

/** Lets a node that receives be followed by a switch that passes on what the flow's own handsets write. */
function hear(nodes: FlowNode[], receiver: FlowNode, handsets: string): FlowNode[] {
  const [wires = []] = receiver.wires as string[][];
  const acknowledges = receiver.inputs === 1;
  const own: FlowNode = {
    id: idOf('own', receiver),
    type: 'switch',
    z: receiver.z,
    name: 'own handsets',
    property: 'topic',
    propertyType: 'msg',
    rules: [{ t: 'regex', v: `^${handsets}`, vt: 'str', case: false }, ...(acknowledges ? [{ t: 'else' }] : [])],
    checkall: 'false',
    repair: false,
    outputs: acknowledges ? 2 : 1,
    x: Number(receiver.x) + 180,
    y: receiver.y,
    wires: [wires, ...(acknowledges ? [[receiver.id]] : [])],
  };
  const moved = nodes.map((node) => {
    if (node.id === receiver.id) return { ...node, wires: [[own.id]] };
    return node.type !== 'comment' && Number(node.x) > 240 ? { ...node, x: Number(node.x) + room } : node;
  });
  return [...moved, own];
}

/** The nodes below a flow with which it is tried. */
function createTrial(nodes: FlowNode[], { click, answers }: Trial, handsets: string): FlowNode[] {
  if (!click && !answers) return [];
  const [tab] = nodes;
  const z = nodes.find(({ type }) => type === 'tab')?.id;
  if (!tab || z === undefined) throw new Error('An example has no tab.');
  const y = Math.max(...nodes.map((node) => Number(node.y ?? 0))) + 80;
  const byName = (wanted: string): FlowNode => {
    const found = nodes.find(({ name, type }) => (name || type) === wanted && type !== 'debug');
    if (!found) throw new Error(`An example has no node ${wanted}.`);
    return found;
  };
  const request = { id: idOf('request', tab), z };
  const shown = { id: idOf('shown', tab), z };
  const made: FlowNode[] = [
    {
      ...request,
      type: 'http request',
      name: 'outside world',
      method: 'POST',
      ret: 'txt',
      paytoqs: 'ignore',
      url: '',
      tls: '',
      persist: false,
      proxy: '',
      insecureHTTPParser: false,
      authType: '',
      senderr: false,
      headers: [],
      x: 730,
      y,
      wires: [[shown.id, ...(click?.next ? [byName(click.next).id] : [])]],
    },
    {
      ...shown,
      type: 'debug',
      name: 'what it says',
      active: true,
      tosidebar: true,
      console: false,
      tostatus: false,
      complete: 'payload',
      targetType: 'msg',
      statusVal: '',
      statusType: 'auto',
      x: 950,
      y,
      wires: [],
    },
  ];
  if (click) {
    const { name, url, payload } = click;
    made.push({
      id: idOf('click', tab),
      type: 'inject',
      z,
      name,
      props: [
        { p: 'url', v: url, vt: 'jsonata' },
        { p: 'payload', v: JSON.stringify(payload(`${handsets}1`)), vt: 'json' },
      ],
      repeat: '',
      crontab: '',
      once: false,
      onceDelay: 0.1,
      x: 150,
      y,
      wires: [[request.id]],
    });
  }
  if (answers) {
    const asked = byName(answers.node);
    const answer = { id: idOf('answer', tab), z };
    const delay = { id: idOf('delay', tab), z };
    const [accepted = [], ...others] = asked.wires as string[][];
    asked.wires = [[...accepted, answer.id], ...others];
    const url = answers.url ?? "env.get('SMS_SIMULATOR_URL') + '/control/reply'";
    made.push(
      {
        ...answer,
        type: 'function',
        name: 'the answer',
        func: `const url = ${url};\nfor (const from of msg.sms.accepted) {\n    const payload = ${answers.payload};\n    if (payload) node.send({ url, payload });\n}`,
        outputs: 1,
        timeout: 0,
        noerr: 0,
        initialize: '',
        finalize: '',
        libs: [],
        x: 350,
        y,
        wires: [[delay.id]],
      },
      {
        ...delay,
        type: 'delay',
        name: '3 s later',
        pauseType: 'delay',
        timeout: '3',
        timeoutUnits: 'seconds',
        rate: '1',
        nbRateUnits: '1',
        rateUnits: 'second',
        randomFirst: '1',
        randomLast: '5',
        randomUnits: 'seconds',
        drop: false,
        allowrate: false,
        outputs: 1,
        x: 530,
        y,
        wires: [[request.id]],
      },
    );
  }
  return made;
}

/** An identifier that is the same each time. */
function idOf(role: string, { id }: FlowNode): string {
  return createHash('sha256').update(`${role} ${id}`).digest('hex').slice(0, 16);
}
