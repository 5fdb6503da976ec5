import assert from 'node:assert/strict';
import { request } from 'undici';
import { simulator, useSimulator } from './use-simulator';

const handset = '6421555123';

describe('simulator: encodings of requests', () => {
  useSimulator(() => ({}));

  /** Sends a body unchanged. */
  const post = async (body: string | Buffer, contentType: string): Promise<{ status: number; text: string }> => {
    const answer = await request(`${simulator.baseUrl}/api/3/sms/out`, {
      method: 'POST',
      headers: { authorization: `Bearer ${simulator.credentials.apiKey}`, 'content-type': contentType },
      body,
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const multipart = (fields: Record<string, string>, boundary = '----boundary'): string =>
    `${Object.entries(fields)
      .map(([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
      .join('')}--${boundary}--\r\n`;

  describe('the character set of a form', () => {
    it('is read from the content type', async () => {
      const type = 'application/x-www-form-urlencoded';
      const cases: [string, Buffer | string][] = [
        [`${type}; charset=ISO-8859-1`, `to=${handset}&body=Gr%FC%DFe+%26+Co`],
        [`${type};charset="windows-1252"`, Buffer.from(`to=${handset}&body=Gr\u00fc\u00dfe+%26+Co`, 'latin1')],
        [type, `to=${handset}&body=Gr%C3%BC%C3%9Fe+%26+Co`],
        [`${type}; charset=utf-8`, `to=${handset}&body=Gr%C3%BC%C3%9Fe+%26+Co`],
      ];
      for (const [contentType, body] of cases) assert.equal((await post(body, contentType)).status, 200, contentType);
      assert.deepEqual(
        simulator.messages.map(({ body }) => body),
        cases.map(() => 'Grüße & Co'),
      );
    });

    it('is refused if it is unknown', async () => {
      const { status, text } = await post(`to=${handset}&body=x`, 'application/x-www-form-urlencoded; charset=klingon');
      assert.equal(status, 400);
      assert.match(text, /klingon/);
      assert.equal(simulator.messages.length, 0);
    });

    it('leaves a stray percent sign unchanged', async () => {
      await post(`to=${handset}&body=100%25+is+100%+%zz+%4`, 'application/x-www-form-urlencoded');
      assert.equal(simulator.messages[0]?.body, '100% is 100% %zz %4');
    });
  });

  describe('a multipart body', () => {
    it('is read like a form', async () => {
      const body = multipart({ to: handset, body: 'Grüße\r\n& Küsse', messageId: 'mine' });
      const { status } = await post(body, 'multipart/form-data; boundary=----boundary');
      assert.equal(status, 200);
      const [message] = simulator.messages;
      assert.deepEqual([message?.messageId, message?.body], ['mine', 'Grüße\r\n& Küsse']);
    });

    it('is refused if it is broken', async () => {
      for (const [body, type] of [
        ['no parts at all', 'multipart/form-data; boundary=x'],
        [multipart({ to: handset, body: 'x' }), 'multipart/form-data'],
        [multipart({ to: handset, body: 'x' }).slice(0, -30), 'multipart/form-data; boundary=----boundary'],
      ] as const) {
        const { status, text } = await post(body, type);
        assert.equal(status, 400, body);
        assert.match(text, /multipart/);
      }
      assert.equal(simulator.messages.length, 0);
    });
  });
});
