import { request } from 'undici';

/** Reads server-sent events, one by one, until the server ends them or the caller stops. */
export async function* readEvents(url: string): AsyncGenerator<{ name: string; data: unknown }> {
  const { statusCode, body } = await request(url);
  if (statusCode !== 200) throw new Error(`The events were answered with ${statusCode}`);
  let text = '';
  for await (const chunk of body.setEncoding('utf8')) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, name = '', data] = /^event: (.*)\ndata: (.*)$/m.exec(block) ?? [];
      if (data !== undefined) yield { name, data: JSON.parse(data) };
    }
  }
}
