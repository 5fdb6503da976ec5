import type { Request, Response } from 'express';
import type { NodeAPI } from 'node-red';
import { type Membership, type OptOut, type OptOutQuery, parseMsisdn, type Wish } from '../../src';
import type { OptOutChangedReport, OptOutsReport } from './account-report';
import { translateError } from './texts';

/** Numbers in one request. */
const mostNumbers = 10_000;

const formatting = /[()./\s+-]/g;

/** Serves who has opted out of an account, and takes changes of that. */
export class OptOutRoutes {
  readonly #RED: NodeAPI;

  constructor(RED: NodeAPI) {
    this.#RED = RED;
  }

  /** A page as JSON; all of it as CSV where that is what is asked for. */
  async read(membership: Membership, request: Request, response: Response): Promise<void> {
    const { search, next } = Object(request.query) as Record<string, unknown>;
    const digits = typeof search === 'string' ? search.replace(formatting, '') : '';
    // No number has anything else in it.
    if (/\D/.test(digits)) {
      response.json({ optouts: [], total: 0 } satisfies OptOutsReport);
      return;
    }
    const asked: OptOutQuery = {
      ...(digits === '' ? undefined : { search: digits }),
      ...(typeof next === 'string' && next !== '' ? { after: next } : undefined),
    };
    await this.#answer(response, async () => {
      if (request.accepts(['application/json', 'text/csv']) === 'text/csv') await sendCsv(membership, asked, response);
      else {
        const { optouts, ...rest } = await membership.optOuts(asked);
        response.json({ optouts: optouts.map(format), ...rest } satisfies OptOutsReport);
      }
    });
  }

  async change(membership: Membership, body: unknown, response: Response): Promise<void> {
    const { msisdns, action } = Object(body) as Record<string, unknown>;
    const wish = (['out', 'in'] as const).find((one): one is Wish => one === action);
    const given: unknown[] | undefined = Array.isArray(msisdns) ? msisdns : undefined;
    const numbers = given?.flatMap((one) => parseMsisdn(String(one)) ?? []);
    if (!wish || !numbers || numbers.length > mostNumbers || numbers.length !== given?.length) {
      response.sendStatus(400);
      return;
    }
    await this.#answer(response, async () => {
      response.json({ changed: await membership.changeOptOuts(numbers, wish) } satisfies OptOutChangedReport);
    });
  }

  async #answer(response: Response, answer: () => Promise<void>): Promise<void> {
    try {
      await answer();
    } catch (error) {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const { code, message } = translateError(this.#RED, error);
      response.status(503).json({ error: { code, message } });
    }
  }
}

async function sendCsv(membership: Membership, query: OptOutQuery, response: Response): Promise<void> {
  let page = await membership.optOuts(query);
  response.type('text/csv').write('msisdn,at,via\r\n');
  for (;;) {
    response.write(page.optouts.map((one) => `${one.msisdn},${format(one).at},${one.via}\r\n`).join(''));
    if (page.next === undefined) break;
    page = await membership.optOuts({ ...query, after: page.next });
  }
  response.end();
}

function format({ at, ...optOut }: OptOut): OptOutsReport['optouts'][number] {
  return { ...optOut, at: new Date(at).toISOString() };
}
