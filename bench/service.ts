import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Mailbox, ServiceEvent, ServiceOrder } from './service-orders';

/** How long a poll waits if nothing is unread (§8), in ms. */
const pollWaitMs = 30_000;

const sendAnswer = Buffer.from(
  '<?xml version="1.0" encoding="UTF-8" standalone="yes"?><outbound-message-delivery messageId="3a9f0c52-6d0f-4a44-8b1c-2f1f5f2a7c11" ' +
    'isError="false"><recipient msisdn="64215550001" isError="false"/></outbound-message-delivery>',
);

interface Box extends Mailbox {
  waitingPolls: Set<() => void>;
}

const boxes = new Map<string, Box>();
let lastNumber = 0;

function boxOf(key: string): Box {
  const existing = boxes.get(key);
  if (existing) return existing;
  const box: Box = { unread: 0, latencyMs: 0, waits: true, waitingPolls: new Set() };
  boxes.set(key, box);
  return box;
}

/** Formats a unique incoming message (§2.3). */
function formatMessage(): string {
  const number = ++lastNumber;
  const body = `Reply+number+${number}+to+your+message%3A+yes%2C+I+will+be+there`;
  return (
    `messageId=in-${process.pid}-${number}&from=64215${100000 + (number % 900000)}&inReplyToId=default&body=${body}` +
    `&messageDate=${encodeURIComponent(new Date().toISOString())}&contentType=text%2Fplain`
  );
}

function answerPoll(request: IncomingMessage, response: ServerResponse): void {
  const box = boxOf(`${request.url} ${request.headers.authorization}`);
  const answer = () => {
    if (box.unread > 0) {
      box.unread--;
      const form = formatMessage();
      response.writeHead(200, {
        'Content-Type': 'application/x-www-form-urlencoded',
        'Content-Length': Buffer.byteLength(form),
      });
      response.end(form);
    } else if (box.waits) {
      const wake = () => {
        clearTimeout(timer);
        box.waitingPolls.delete(wake);
        answer();
      };
      const timer = setTimeout(() => {
        box.waitingPolls.delete(wake);
        response.writeHead(204).end();
      }, pollWaitMs);
      response.once('close', () => {
        clearTimeout(timer);
        box.waitingPolls.delete(wake);
      });
      box.waitingPolls.add(wake);
    } else {
      response.writeHead(204).end();
    }
  };
  if (box.latencyMs > 0) setTimeout(answer, box.latencyMs);
  else answer();
}

function answerSend(request: IncomingMessage, response: ServerResponse): void {
  const { latencyMs } = boxOf(`${request.url} ${request.headers.authorization}`);
  const answer = () => {
    response.writeHead(200, { 'Content-Type': 'text/xml; charset=UTF-8', 'Content-Length': sendAnswer.length });
    response.end(sendAnswer);
  };
  if (latencyMs > 0) setTimeout(answer, latencyMs);
  else answer();
}

const server = createServer((request, response) => {
  request.resume();
  request.once('end', () => {
    if (request.url === '/api/3/sms/out') {
      answerSend(request, response);
    } else {
      answerPoll(request, response);
    }
  });
});
server.keepAliveTimeout = 300_000;

process.on('message', ({ id, path, apiKey, mailbox }: ServiceOrder) => {
  const box = boxOf(`${path} Bearer ${apiKey}`);
  Object.assign(box, mailbox);
  for (const wake of box.waits ? [...box.waitingPolls].slice(0, box.unread) : [...box.waitingPolls]) wake();
  process.send?.({ type: 'done', id } satisfies ServiceEvent);
});
process.once('disconnect', () => process.exit());

server.listen(0, '127.0.0.1', () => {
  process.send?.({ type: 'listening', port: (server.address() as AddressInfo).port } satisfies ServiceEvent);
});
