import assert from 'node:assert/strict';
import type { OutgoingHttpHeaders } from 'node:http';
import { inspect } from 'node:util';
import { startSimulator } from '../../../simulator';
import { Client, type ClientOptions } from '../../../src/http/client';
import { createConnections } from '../../../src/http/connections';
import type { OutboundMessage } from '../../../src/model';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { useClosing } from '../closing';
import { startRawService } from '../raw-service';
import { createTimeouts, failure } from './exchange-caller';

const html = { 'content-type': 'text/html' };
const message: OutboundMessage = { to: ['6421555123'], body: 'a private body' };

describe('Client', () => {
  const closing = useClosing();

  function createClient(baseUrl: string, options: Partial<ClientOptions> = {}): Client {
    return new Client({
      baseUrl,
      authentication: { type: 'bearer', apiKey: 'demo-api-key' },
      connections: closing.add(createConnections({ baseUrl: 'http://127.0.0.1' }), (it) => void it.close()),
      method: 'POST',
      timeoutMs: 5_000,
      ...options,
    });
  }

  const start = async (options: Parameters<typeof startSimulator>[0] = {}) =>
    closing.add(await startSimulator({ waitMs: 20, statusDelayMs: Number.POSITIVE_INFINITY, ...options }), (it) =>
      it.close(),
    );

  /** Starts a service that answers every request in the same way. */
  function startAnswering(status: number, reason: string, body = '', headers: OutgoingHttpHeaders = {}) {
    return startRawService(closing, (incoming, outgoing) => {
      incoming.resume();
      outgoing.writeHead(status, reason, { 'content-type': 'text/xml', ...headers }).end(body);
    });
  }

  const calls = {
    send: (client: Client) => client.send(message),
    'poll incoming': (client: Client) => client.pollIncoming(),
    'poll status': (client: Client) => client.pollStatuses(),
    'poll outbox': (client: Client) => client.pollOutbox(),
    feed: (client: Client) => client.readFeed(),
  };
  const names = Object.keys(calls) as (keyof typeof calls)[];

  describe('at each endpoint (§4)', () => {
    for (const type of ['bearer', 'basic', 'form'] as const) {
      for (const method of ['POST', 'GET'] as const) {
        it(`uses ${type} authentication in ${method} requests (§5)`, async () => {
          const simulator = await start({ basePath: '/some/path' });
          const { userId, password, apiKey } = simulator.credentials;
          const authentication = type === 'bearer' ? { type, apiKey } : { type, userId, password };
          const client = createClient(simulator.baseUrl, { authentication, method });
          const delivery = await client.send({ ...message, messageId: 'my-id' });
          simulator.reply({ from: '6421555123', body: 'yes & no' });
          simulator.status({ messageId: 'my-id', msisdn: '6421555123', statusCode: 'RCV' });
          const [incoming] = await client.pollIncoming();
          const [status] = await client.pollStatuses();
          const [sent] = await client.pollOutbox();
          const feed = await client.readFeed({ size: 5 });
          assert.deepEqual(delivery.accepted, ['6421555123']);
          assert.deepEqual([incoming?.body, incoming?.inReplyToId, incoming?.via], ['yes & no', 'my-id', 'poll']);
          assert.deepEqual([status?.statusCode, status?.final, status?.inReplyToId], ['RCV', true, 'my-id']);
          assert.deepEqual([sent?.messageId, sent?.recipientCount], ['my-id', 1]);
          assert.equal(feed.account.currency, 'EUR');
          const secret = type === 'bearer' ? apiKey : password;
          for (const { endpoint, method: used, query, params } of simulator.requests) {
            assert.equal(used, endpoint === 'outbox' ? 'GET' : method);
            assert.equal('password' in query, type === 'form' && used === 'GET', endpoint);
            assert.equal('password' in params, type === 'form', endpoint);
            if (type !== 'form') assert.ok(!JSON.stringify(query).includes(secret));
          }
        });
      }
    }

    it('stops waiting for a poll answer after 45 s (§8)', async () => {
      const simulator = await start({ waitMs: 60_000 });
      for (const kind of ['incoming', 'status'] as const) {
        const clock = new VirtualClock();
        const client = createClient(simulator.baseUrl, { clock, timeoutMs: 30 });
        let isOver = false;
        const failing = failure(calls[`poll ${kind}`](client)).finally(() => {
          isOver = true;
        });
        await until(() => simulator.polling(kind) === 1);
        await clock.advance(44_999);
        assert.equal(isOver, false, kind);
        await clock.advance(1);
        assert.equal((await failing).params.detail, 'timed out after 45 s', kind);
      }
    });
  });

  describe('when sending (§2.2)', () => {
    it('reports a recipient with several errors once', async () => {
      const simulator = await start();
      const failed = (msisdn: string, reason = '') => `<recipient msisdn="${msisdn}" isError="true"${reason}/>`;
      const listed = [
        failed('6421555124'),
        failed('+6421555124', ' errorCode="403" errorMessage="blocked"'),
        failed('6421555124', ' errorCode="500" errorMessage="other"'),
        '<recipient msisdn="6421555123" isError="false"/>',
      ];
      const body = `<outbound-message-delivery messageId="m" isError="false">${listed.join('')}</outbound-message-delivery>`;
      simulator.fault('send', { status: 200, contentType: 'text/xml', body });
      const delivery = await createClient(simulator.baseUrl).send({ ...message, to: ['6421555123', '6421555124'] });
      assert.deepEqual(delivery.accepted, ['6421555123']);
      assert.deepEqual(delivery.failed, [{ msisdn: '6421555124', errorCode: 403, errorMessage: 'blocked' }]);
      assert.equal(delivery.recipients.length, 4);
    });

    it('converts the errorCode of the root element to an SmsError', async () => {
      for (const [text, code, errorCode] of [
        ['401', 'SMS_UNAUTHORIZED', 401],
        ['403', 'SMS_FORBIDDEN', 403],
        ['E17', 'SMS_SERVICE', 'E17'],
        ['', 'SMS_SERVICE', undefined],
      ] as const) {
        const xml = `<outbound-message-delivery isError="true" errorCode="${text}" errorMessage="No"/>`;
        const { baseUrl } = await startAnswering(200, 'OK', xml);
        const error = await failure(createClient(baseUrl).send(message));
        assert.deepEqual([error.code, error.statusCode, error.errorMessage], [code, 200, 'No']);
        assert.equal(error.errorCode, errorCode);
      }
    });

    it('reads reason and Retry-After of a 403 with an XML body', async () => {
      const xml = '<outbound-message-delivery isError="true" errorCode="403" errorMessage="Limit reached"/>';
      const { baseUrl } = await startAnswering(403, '', xml, { 'retry-after': '600' });
      const error = await failure(createClient(baseUrl).send(message));
      assert.deepEqual([error.code, error.errorCode, error.retryAfter], ['SMS_FORBIDDEN', 403, '600']);
      assert.match(error.message, /Limit reached/);
    });
  });

  describe('on status 400 (§7.1)', () => {
    for (const [title, reason, body, expected] of [
      ['the reason phrase', 'Parameter to is missing', '<h1>other</h1>', /^Parameter to is missing$/],
      [
        'the page heading if the reason phrase is "Bad Request"',
        'Bad Request',
        '<html><h1>From the &amp; page</h1></html>',
        /^From the & page$/,
      ],
      ['the page heading if the reason phrase is "BAD REQUEST"', 'BAD REQUEST', '<H1 class="x">Page</H1>', /^Page$/],
      ['the page heading if the reason phrase is empty', '', '<h1>Page</h1>', /^Page$/],
      ['a default text if the answer has no reason', 'Bad Request', 'nothing here', /gave no reason/],
    ] as const) {
      it(`reports ${title}`, async () => {
        const { baseUrl } = await startAnswering(400, reason, body, html);
        for (const name of names) {
          const error = await failure(calls[name](createClient(baseUrl)));
          assert.deepEqual([error.code, error.statusCode], ['SMS_BAD_REQUEST', 400], name);
          assert.match(error.message, expected, name);
        }
      });
    }
  });

  describe('on a status other than 200 (§7)', () => {
    for (const [status, code, onSend, onRead, adviceOnSend, adviceOnRead] of [
      [201, 'SMS_SERVICE', 'statusUncertain', 'statusUnexpected', /might have been sent/],
      [304, 'SMS_SERVICE', 'redirect', 'redirect', /./],
      [400, 'SMS_BAD_REQUEST', 'badRequestBare', 'badRequestBareRead', /fields of the message/, /base URL/],
      [401, 'SMS_UNAUTHORIZED', 'unauthorized', 'unauthorized', /./],
      [403, 'SMS_FORBIDDEN', 'forbidden', 'forbiddenRead', /recipients/, /rights of the account/],
      [404, 'SMS_SERVICE', 'notFound', 'notFound', /./],
      [407, 'SMS_SERVICE', 'statusUnexpected', 'statusUnexpected', /./],
      [429, 'SMS_SERVICE', 'tooManyRequests', 'tooManyRequests', /Send or poll more slowly, or try again later\.$/],
      [500, 'SMS_SERVICE', 'serverErrorUncertain', 'serverError', /might have been sent/],
      [503, 'SMS_SERVICE', 'serverError', 'serverError', /^(?!.*might have been sent)/],
    ] as const) {
      it(`raises ${code} for ${status} at each endpoint`, async () => {
        const { baseUrl } = await startAnswering(status, '', '', { location: 'http://127.0.0.1:1/' });
        for (const name of names) {
          const error = await failure(calls[name](createClient(baseUrl)));
          assert.deepEqual([error.code, error.statusCode], [code, status], name);
          const [reason, advice] = name === 'send' ? [onSend, adviceOnSend] : [onRead, adviceOnRead ?? /./];
          assert.equal(error.reason, reason, name);
          assert.match(error.message, advice, name);
        }
      });
    }

    it('reports the status of an endless or incomplete answer', async () => {
      for (const [status, kind] of [
        [400, 'endless'],
        [400, 'broken off'],
        [500, 'too large'],
      ] as const) {
        const { clock, expire } = createTimeouts();
        const { baseUrl } = await startRawService(closing, (incoming, outgoing) => {
          incoming.resume();
          outgoing.writeHead(status, 'A reason of its own', { 'content-length': 9 * 1024 * 1024 });
          if (kind === 'endless') outgoing.write('x');
          else if (kind === 'broken off') outgoing.write('x', () => incoming.socket.end());
          else outgoing.write(Buffer.alloc(9 * 1024 * 1024 - 1));
        });
        const onAnswer = () => kind === 'endless' && expire();
        const error = await failure(createClient(baseUrl, { clock }).send(message, { onAnswer }));
        assert.equal(error.statusCode, status, kind);
        if (status === 400) assert.equal(error.errorMessage, 'A reason of its own');
      }
    });
  });

  describe('with credentials in the answer', () => {
    const quoted = 'Bad demo-api-key, https://flows.example.com/cb?token=S3cret%2Ftoken, other-token';
    const result = `isError="true" errorCode="${quoted}" errorMessage="${quoted}"`;
    const recipient = `<recipient msisdn="6421555123" ${result}/>`;
    for (const [where, status, reason, body] of [
      ['the status line', 400, quoted, ''],
      ['a heading', 400, '', `<h1>${quoted}</h1>`],
      ['the root element', 200, 'OK', `<outbound-message-delivery ${result}/>`],
      ['the root element of a 401', 401, 'No', `<outbound-message-delivery ${result}/>`],
      ['the errors of recipients', 200, 'OK', `<outbound-message-delivery>${recipient}</outbound-message-delivery>`],
    ] as const) {
      it(`removes credentials from ${where}`, async () => {
        const { baseUrl } = await startAnswering(status, reason, body);
        const sending = createClient(baseUrl).send({
          ...message,
          callbackUrl: 'https://flows.example.com/cb?a={!status}&token=S3cret%2Ftoken',
          callbackStatusUrl: 'https://flows.example.com/st?token=other%2Dtoken#x',
        });
        const shown = inspect(await sending.catch((error: Error) => [error, JSON.stringify(error)]), { depth: 9 });
        assert.doesNotMatch(shown, /demo-api-key|S3cret|other-token/);
        assert.match(shown, /•••/);
      });
    }

    it('hides credentials that the length limit of a heading would cut', async () => {
      const start = 'x'.repeat(490);
      const { baseUrl } = await startAnswering(400, '', `<h1>${start} demo-api-key</h1>`, html);
      const error = await failure(createClient(baseUrl).send(message));
      assert.equal(error.errorMessage, `${start} •••`);
    });
  });

  describe('with a reason in the answer', () => {
    const forged = 'Blocked\r\n[info] all is well\u001b[2J\u009b1m\u2028a\u202eb\u2066c';
    const line = 'Blocked [info] all is well [2J 1m a b c';

    it('removes line breaks from `message`, not `errorMessage`', async () => {
      // Removes U+001B, because XML cannot contain it, not even as a reference.
      const inXml = forged.replace('\u001b', '');
      const attribute = [...inXml].map((character) => `&#${character.codePointAt(0)};`).join('');
      for (const status of [200, 400, 403]) {
        const body = `<outbound-message-delivery isError="true" errorCode="x" errorMessage="${attribute}"/>`;
        const { baseUrl } = await startAnswering(status, '', body);
        const error = await failure(createClient(baseUrl).send(message));
        assert.ok(error.message.includes(line.replace(' [2J', '[2J')), error.message);
        assert.equal(error.errorMessage, inXml);
      }
      const { baseUrl } = await startAnswering(400, '', `<h1>${forged}</h1>`, html);
      assert.equal((await failure(createClient(baseUrl).send(message))).message, line);
      const { baseUrl: mute } = await startAnswering(400, '', '<h1>\u009b</h1>', html);
      assert.equal((await failure(createClient(mute).send(message))).reason, 'badRequestBare');
    });

    it('shortens a long reason in `message`, not `errorMessage`', async () => {
      const long = '😀'.repeat(501);
      const body = `<outbound-message-delivery isError="true" errorCode="x" errorMessage="${long}"/>`;
      const { baseUrl } = await startAnswering(400, '', body);
      const error = await failure(createClient(baseUrl).send(message));
      assert.equal(error.message, `${'😀'.repeat(499)}…`);
      assert.equal(error.errorMessage, long);
    });
  });

  describe('on status 200', () => {
    it('raises SMS_RESPONSE for a missing or unreadable body', async () => {
      const simulator = await start();
      for (const fault of [{ garbage: true }, { empty: true }] as const) {
        for (const endpoint of ['send', 'incoming', 'status', 'outbox', 'feed'] as const)
          simulator.fault(endpoint, fault);
        for (const name of names) {
          const error = await failure(calls[name](createClient(simulator.baseUrl)));
          assert.deepEqual([error.code, error.statusCode], ['SMS_RESPONSE', 200], name);
          assert.match(
            error.message,
            name === 'send' ? /could not be read.*might have been sent/ : /Check the base URL/,
          );
        }
      }
    });
  });
});
