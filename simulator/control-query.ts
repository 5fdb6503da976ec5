import { isMsisdn } from './account';
import { ControlError } from './control-input';

/** The query of a request to the control API. Parameters are checked when they are read. */
export class ControlQuery {
  constructor(private readonly params: Readonly<Record<string, string>>) {}

  /** Returns a parameter as text, or an empty text if it is absent. */
  text(name: string): string {
    return this.params[name] ?? '';
  }

  msisdn(name: string): string {
    const value = this.text(name);
    if (!isMsisdn(value)) throw new ControlError(`${name} must be a number in international format`);
    return value;
  }

  size(name: string, defaultSize: number, max: number): number {
    const value = Number(this.params[name] ?? defaultSize);
    if (!Number.isInteger(value) || value < 1 || value > max) {
      throw new ControlError(`${name} must be a whole number from 1 to ${max}`);
    }
    return value;
  }

  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.params[name];
    if (value === undefined) return undefined;
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw new ControlError(`${name} must be one of: ${choices.join(', ')}`);
    return choice;
  }
}
