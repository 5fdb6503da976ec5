import assert from 'node:assert/strict';
import { request } from 'undici';
import { handset, simulator, useSimulator } from './use-simulator';

describe('simulator: request parser', () => {
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

  const type = 'application/x-www-form-urlencoded';

  it('reads a form in the charset of its content type', async () => {
    const cases: [string, Buffer | string][] = [
      [`${type}; charset=ISO-8859-1`, `to=${handset}&body=Gr%FC%DFe+%26+Co`],
      [`${type};charset="windows-1252"`, Buffer.from(`to=${handset}&body=Gr\u00fc\u00dfe+%26+Co`, 'latin1')],
      [type, `to=${handset}&body=Gr%C3%BC%C3%9Fe+%26+Co`],
    ];
    for (const [contentType, body] of cases) assert.equal((await post(body, contentType)).status, 200, contentType);
    for (const { body } of simulator.messages) assert.equal(body, 'Grüße & Co');
  });

  it('keeps a stray percent sign in a form', async () => {
    await post(`to=${handset}&body=100%25+is+100%+%zz+%4`, type);
    assert.equal(simulator.messages[0]?.body, '100% is 100% %zz %4');
  });

  it('reads a multipart body like a form', async () => {
    const body = multipart({ to: handset, body: 'Grüße\r\n& Küsse', messageId: 'mine' });
    assert.equal((await post(body, 'multipart/form-data; boundary=----boundary')).status, 200);
    const [message] = simulator.messages;
    assert.deepEqual([message?.messageId, message?.body], ['mine', 'Grüße\r\n& Küsse']);
  });

  it('answers 400 to an unknown charset or a broken multipart body', async () => {
    const fields = { to: handset, body: 'x' };
    for (const [body, contentType, reason] of [
      [`to=${handset}&body=x`, `${type}; charset=klingon`, /klingon/],
      ['no parts at all', 'multipart/form-data; boundary=x', /multipart/],
      [multipart(fields), 'multipart/form-data', /multipart/],
      [multipart(fields).slice(0, -30), 'multipart/form-data; boundary=----boundary', /multipart/],
    ] as const) {
      const { status, text } = await post(body, contentType);
      assert.equal(status, 400, body);
      assert.match(text, reason);
    }
    assert.equal(simulator.messages.length, 0);
  });
});
