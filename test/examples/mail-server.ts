import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Server } from 'node:net';
import type { Readable } from 'node:stream';
import { requirePackage } from './packages';

/** The part of the package `smtp-server` that the tests use. The package is a dependency of the e-mail nodes. */
interface SmtpModule {
  SMTPServer: new (options: {
    hideSTARTTLS: boolean;
    onAuth(auth: object, session: object, done: (error: null, who: { user: string }) => void): void;
    onData(stream: Readable, session: object, done: (error?: Error) => void): void;
  }) => {
    server: Server;
    listen(port: number, host: string): Server;
    close(done: () => void): void;
    on(event: 'error', listener: () => void): void;
  };
}

/** A mail server on loopback. It accepts e-mails by SMTP, and serves those in its mailbox by POP3. */
export class MailServer {
  /** Received e-mails, unchanged. */
  readonly taken: string[] = [];
  /** True if the server accepts e-mails. */
  isTaking = true;
  readonly #mailbox: string[] = [];
  readonly #pop3 = createServer((socket) => {
    socket.setEncoding('utf8');
    socket.on('error', () => socket.destroy());
    socket.write('+OK\r\n');
    let rest = '';
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        socket.write(this.#answer(line));
        if (line === 'QUIT') socket.end();
      }
    });
  });
  readonly #smtp = new (
    createRequire(requirePackage.resolve('node-red-node-email/package.json'))('smtp-server') as SmtpModule
  ).SMTPServer({
    hideSTARTTLS: true,
    onAuth: (_auth, _session, done) => done(null, { user: 'office' }),
    onData: (stream, _session, done) => {
      let mail = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        mail += text;
      });
      stream.on('end', () => {
        if (!this.isTaking) return done(new Error('Try again later'));
        this.taken.push(mail);
        done();
      });
    },
  });

  async open(): Promise<void> {
    this.#smtp.on('error', () => {});
    await Promise.all([
      once(this.#smtp.listen(0, '127.0.0.1'), 'listening'),
      once(this.#pop3.listen(0, '127.0.0.1'), 'listening'),
    ]);
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#smtp.close(resolve));
    this.#pop3.close();
  }

  get smtpPort(): number {
    return (this.#smtp.server.address() as AddressInfo).port;
  }

  get pop3Port(): number {
    return (this.#pop3.address() as AddressInfo).port;
  }

  /** Puts an e-mail into the mailbox. */
  put(mail: { from: string; subject: string; body: string; id: string }): void {
    const { from, subject, body, id } = mail;
    const lines = [
      `From: ${from}`,
      'To: sms@example.com',
      `Subject: ${subject}`,
      `Message-ID: <${id}>`,
      '',
      ...body.split('\n'),
    ];
    this.#mailbox.push(lines.join('\r\n'));
  }

  #answer(line: string): string {
    const [verb = '', number = ''] = line.split(' ');
    const index = Number(number) - 1;
    if (verb === 'STAT') return `+OK ${this.#mailbox.filter((mail) => mail !== '').length} 0\r\n`;
    if (verb === 'RETR') return `+OK\r\n${this.#mailbox[index]}\r\n.\r\n`;
    if (verb === 'DELE') this.#mailbox[index] = '';
    if (verb === 'QUIT') this.#mailbox.splice(0, this.#mailbox.length, ...this.#mailbox.filter((mail) => mail !== ''));
    return '+OK\r\n';
  }
}
