import assert from 'node:assert/strict';
import { handset, RunningFlow, sendNode, setVariables, useService } from './running-flow';
import { send, sendRefused } from './sending';

describe('sms-send', () => {
  const sim = useService();

  const start = (properties: Record<string, unknown> = {}) => RunningFlow.start(sendNode(sim, properties));

  const refuses = sendRefused.bind(undefined, sim);

  const template = (body: string) => start({ body, bodyType: 'template' });

  describe('with a template body', () => {
    const message = {
      payload: { pump: 'A & "B"', temperature: 71.5, off: false, none: null },
      items: [{ n: 1 }, { n: 2 }],
    };
    for (const [title, body, expected] of [
      [
        'properties of the flow message',
        'Pump {{payload.pump}} is at {{payload.temperature}} °C',
        'Pump A & "B" is at 71.5 °C',
      ],
      ['the value false', 'on: {{payload.off}}', 'on: false'],
      ['an empty string for a missing variable', 'a{{payload.missing}}{{missing.too}}{{payload.none}}b', 'ab'],
      ['Mustache sections', '{{#items}}{{n}} at {{payload.temperature}}; {{/items}}', '1 at 71.5; 2 at 71.5; '],
    ] as const) {
      it(`fills in ${title}`, async () => {
        await send(await template(body), message);
        assert.equal(sim.requests[0]?.params.body, expected);
      });
    }

    it('fills in context and environment variables', async () => {
      const flow = await template('{{flow.site.name}} {{global[memory].limit}} {{flow.missing}}{{env.SMS_TEST_WORD}}');
      const context = flow.node('send').context();
      context.flow.set('site', { name: 'North' });
      context.global.set('limit', 5);
      setVariables({ SMS_TEST_WORD: 'word' });
      await send(flow);
      assert.equal(sim.requests[0]?.params.body, 'North 5 word');
    });

    for (const [title, body, reason] of [
      ['the filled-in body is blank', '{{missing}}', /body of the message is blank/],
      ['the filled-in body is too long', '{{payload}}', /481 characters/],
      ['a tag is not closed', '{{payload', /^The template in the field "[^"]+" cannot be read: Unclosed tag/],
    ] as const) {
      it(`refuses the message if ${title}`, async () => {
        await refuses(await template(body), { payload: 'x'.repeat(481) }, 'SMS_INPUT', 'body', reason);
      });
    }
  });

  describe('with the content type gsm', () => {
    const gsm = { contentTypeType: 'gsm' };

    it('replaces characters that GSM-7 lacks', async () => {
      const flow = await start(gsm);
      await send(flow, { payload: '“It’s on” – 5…' });
      assert.equal(sim.requests[0]?.params.body, '"It\'s on" - 5...');
      assert.equal(sim.requests[0]?.params.contentType, undefined);
      const { sms } = flow.received('sent')[0] ?? assert.fail();
      assert.deepEqual([sms?.encoding, sms?.parts, sms?.replacements], ['GSM-7', 1, 5]);
    });

    it('compares duplicates by the body before the replacements', async () => {
      const flow = await start({ ...gsm, once: 'key', onceType: 'msg', keep: true });
      await send(flow, { payload: '“a”', key: 1 });
      await send(flow, { payload: '“a”', key: 1 });
      await refuses(flow, { payload: '"a"', key: 1 }, 'SMS_INPUT', 'once', /deduplication key/);
      assert.equal(sim.requests.length, 1);
      const [first, second] = flow.received('sent');
      assert.deepEqual([first?.sms?.replacements, second?.sms?.replacements, second?.sms?.duplicate], [2, 2, true]);
    });
  });

  for (const value of ['auto', 'gsm', 'text/plain\r\nX-Smuggled: 1']) {
    it(`refuses ${JSON.stringify(value)} as a content type from \`msg\``, async () => {
      const flow = await start({ contentType: 'value', contentTypeType: 'msg' });
      await refuses(flow, { value }, 'SMS_INPUT', 'contentType', /content type is not known/);
    });
  }

  it('refuses a sender name as the recipient of a reply', async () => {
    const flow = await start();
    await refuses(flow, { topic: 'NZ Post', sms: { from: 'NZ Post' } }, 'SMS_INPUT', 'to', /"NZ Post" is a name/);
    await send(flow, { topic: handset, sms: { from: `+${handset}` } });
    assert.equal(sim.requests.length, 1);
  });
});
