import assert from 'node:assert/strict';
import type { NodeAPI } from 'node-red';
import type { SmsMessage } from '../../nodes/runtime/messages';
import { createAnswerOutputs, createOutputs } from '../../nodes/runtime/send-outputs';
import type { OutcomeEvent, RecipientResult, Sent } from '../../src';

const many = 5_000;

function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(64_200_000_000 + index));
}

/** Creates a fake Node-RED that counts the characters of the messages that it copies. */
function startCounting() {
  const counts = { copied: 0 };
  const util = {
    generateId: () => 'group',
    cloneMessage(message: SmsMessage) {
      counts.copied += JSON.stringify(message).length;
      return structuredClone(message);
    },
  };
  return { RED: { util } as unknown as NodeAPI, counts };
}

function failAll(RED: NodeAPI, message: SmsMessage, recipients: string[]): SmsMessage[] {
  const failed = recipients.map(
    (msisdn): RecipientResult => ({ msisdn, isError: true, errorCode: 402, errorMessage: 'no funds' }),
  );
  const sent = { messageId: 'm', statusCode: 200, isError: true, recipients: failed, accepted: [], failed };
  const news = { encoding: 'gsm7', parts: 1, redelivered: false, duplicate: false, outcome: sent };
  const slices = createOutputs(RED, message, news as unknown as OutcomeEvent & { outcome: Sent });
  return slices.flatMap((create) => create()[1]);
}

describe('sending to 5,000 recipients', () => {
  it('does not copy the recipient list for each failed recipient', () => {
    const { RED, counts } = startCounting();
    const topic = numbers(many);
    const payload = { deep: 1 };
    const message = {
      topic,
      payload,
      sms: { recipients: topic },
      parts: { id: topic.join(' ') },
    } as unknown as SmsMessage;
    const before = structuredClone(message);
    const copies = failAll(RED, message, topic);
    assert.deepEqual(message, before);
    assert.deepEqual(
      copies.map((copy) => copy.topic),
      topic,
    );
    assert.deepEqual([copies[0]?.payload, copies.at(-1)?.payload], [payload, payload]);
    assert.equal(new Set([payload, ...copies.map((copy) => copy.payload)]).size, many + 1);
    assert.deepEqual((copies[0]?.parts as SmsMessage | undefined)?.parts, { id: topic.join(' ') });
    assert.equal(Math.floor(counts.copied / many / 100), 0, `${counts.copied} characters`);
  });

  it('does not copy the recipient list for each missing answer', () => {
    const { RED, counts } = startCounting();
    const topic = numbers(many);
    for (const recipient of topic) {
      createAnswerOutputs(RED, { topic, payload: 'hello' } as unknown as SmsMessage, {
        messageId: 'm',
        recipient,
        result: { reason: 'timeout' },
        redelivered: false,
      });
    }
    assert.equal(Math.floor(counts.copied / many / 100), 0, `${counts.copied} characters`);
  });
});
