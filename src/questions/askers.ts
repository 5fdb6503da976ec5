import type { SmsError } from '../errors';
import type { KeptTexts } from '../outbox/keeping';
import type { Ledger } from '../outbox/ledger';
import type { Outlet } from '../outbox/outlet';

/** What is known of the nodes that ask. */
export interface AskersOptions {
  ledger: Pick<Ledger, 'questions'>;
  kept(): Pick<KeptTexts, 'stateOf'>;
  /** A node that is deployed. */
  outlet(node: string): Outlet | undefined;
  /** See {@link SenderOptions}. */
  onAsking(node: string, isAsking: boolean): void;
}

/** The nodes with open questions: replies are polled for them, and they are told when that fails. */
export class Askers {
  readonly #options: AskersOptions;

  constructor(options: AskersOptions) {
    this.#options = options;
  }

  /** A node has other questions than before, or has come back to them. */
  changed(node: string): void {
    const { ledger, onAsking } = this.#options;
    onAsking(node, ledger.questions.openOf(node) > 0);
  }

  /**
   * Replies to a node's questions cannot be polled. An outage that its kept texts have told of is not told again, nor is the store's
   * failure, which each node is told that needs it.
   *
   * @returns whether the node is told
   */
  onPollFailing(node: string, error: SmsError): boolean {
    const { kept, outlet } = this.#options;
    const { waiting, outage } = kept().stateOf(node);
    const asker = outlet(node);
    if (!asker || outage || error.code === 'SMS_STORE') return false;
    asker.onOutage(error.with({ waiting }));
    return true;
  }

  /** They can again, which one of these nodes is told. */
  onPollRecovered(nodes: Iterable<string>): void {
    const [first] = [...nodes].flatMap((node) => this.#options.outlet(node) ?? []);
    first?.onRecovered('polling');
  }
}
