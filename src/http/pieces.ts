/** Each piece takes some hundred bytes for itself, which those of an ordinary connection have in plenty. */
const mostLoose = 1_000;

/** A body that comes in pieces, however small they are: a million of one byte take little more than a million bytes. */
export class Pieces {
  readonly #pieces: Buffer[] = [];
  /** How many of the last ones are as they came. */
  #loose = 0;
  #length = 0;

  /** Of all pieces, in bytes. */
  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    this.#length += piece.length;
    this.#pieces.push(piece);
    if (++this.#loose < mostLoose) return;
    this.#pieces.push(Buffer.concat(this.#pieces.splice(-mostLoose)));
    this.#loose = 0;
  }

  join(): Buffer {
    const [first] = this.#pieces;
    return first !== undefined && this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces);
  }
}
