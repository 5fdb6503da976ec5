#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { startSimulator } from './index';

/** Maximum delay of a Node.js timer, in ms. */
const maxTimerMs = 2_147_483_647;

const help = `Usage: sms-simulator [options]

Runs the SMS service on this machine, to build and try flows without an account.
Open the page that it names in a browser to write as a handset and to see what arrives.

  --port <number>      port to listen on (default 8025; 0 for any free port)
  --host <address>     address to listen on (default 127.0.0.1, which only this machine can reach;
                       at other addresses, everyone who can reach it can read and change everything)
  --wait-ms <number>   how long a poll waits if nothing is unread, in ms (default 30000)
  --status-ms <number> time from submission to SNT, and again to RCV, in ms (default 1000)
  --data <folder>      keep messages, address book and settings in this folder across restarts (default: in memory)
  --help               shows this text
`;

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '8025' },
      host: { type: 'string', default: '127.0.0.1' },
      'wait-ms': { type: 'string', default: '30000' },
      'status-ms': { type: 'string', default: '1000' },
      data: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const simulator = await startSimulator({
    port: readNumber('port', values.port, 65_535),
    host: values.host,
    waitMs: readNumber('wait-ms', values['wait-ms']),
    statusDelayMs: readNumber('status-ms', values['status-ms']),
    ...(values.data !== undefined && { dataFolder: values.data }),
  });
  const { userId, password, apiKey } = simulator.credentials;
  process.stdout.write(
    `${[
      `Page       ${simulator.pageUrl}`,
      `Base URL   ${simulator.baseUrl}`,
      `API key    ${apiKey}`,
      `User       ${userId}`,
      `Password   ${password}`,
      'Stop with Ctrl-C.',
    ].join('\n')}\n`,
  );
  const stop = (): void => {
    simulator.close().catch(fail);
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

function readNumber(name: string, text: string, max = maxTimerMs): number {
  if (/^\d+$/.test(text) && Number(text) <= max) return Number(text);
  throw new Error(`--${name} must be a whole number up to ${max}, not "${text}".`);
}

function fail(error: unknown): void {
  const { code, message } = error instanceof Error ? (error as NodeJS.ErrnoException) : { message: String(error) };
  const advice = code === 'EADDRINUSE' ? '. Choose another port with --port.' : '';
  process.stderr.write(`${message}${advice}\n`);
  process.exitCode = 1;
}

run().catch(fail);
