import { formatRemembered, parseRemembered } from './format';
import type { Remembered } from './store';

/** What is remembered, as it stands at the server. */
export class RedisTexts {
  /** What was read and is not written as this version would. */
  readonly #foreign = new WeakMap<Remembered, string>();

  /** `null` stands for nothing, as in answers. */
  read(text: string | null): Remembered | undefined {
    if (text === null) return undefined;
    const remembered = parseRemembered(text);
    if (formatRemembered(remembered) !== text) this.#foreign.set(remembered, text);
    return remembered;
  }

  /** As it stood when it was read; `false` for nothing, as in scripts. */
  former(remembered: Remembered | undefined): string | false {
    if (remembered === undefined) return false;
    return this.#foreign.get(remembered) ?? formatRemembered(remembered);
  }
}
