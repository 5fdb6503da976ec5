import type { AccountSettings } from '../account/settings';
import type { PollSummary } from '../account/state';
import type { Kind } from '../model';
import { Endpoint, type EndpointHost } from './endpoint';

const kinds = ['incoming', 'status', 'outbox'] as const satisfies readonly Kind[];

/** The endpoints of an account, each made when somebody first wants it polled. */
export class Endpoints {
  readonly #host: EndpointHost;
  readonly #made: Partial<Record<Kind, Endpoint>> = {};

  constructor(host: EndpointHost) {
    this.#host = host;
  }

  of(kind: Kind): Endpoint {
    this.#made[kind] ??= new Endpoint(kind, this.#host);
    return this.#made[kind];
  }

  isWatched(kind: Kind): boolean {
    return this.#made[kind]?.isWatched ?? false;
  }

  /** See {@link Endpoint.settings}. */
  settingsOf(kind: Kind): AccountSettings | undefined {
    return this.#made[kind]?.settings ?? this.#host.settings();
  }

  /** Where the loops stand that run. */
  get summaries(): PollSummary[] {
    return kinds.flatMap((kind) => this.#made[kind]?.summary ?? []);
  }

  /** See {@link Endpoint.holdOrResume}. */
  holdOrResume(): void {
    for (const kind of kinds) this.#made[kind]?.holdOrResume();
  }
}
