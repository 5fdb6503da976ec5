/** What is used of a module of Node.js 22.13 that the types of Node.js 20 do not know. */
declare module 'node:sqlite' {
  export interface StatementSync {
    get(...parameters: (string | number)[]): unknown;
    iterate(...parameters: (string | number)[]): Iterable<unknown>;
    run(...parameters: (string | number)[]): unknown;
  }

  export class DatabaseSync {
    constructor(file: string);
    exec(sql: string): void;
    prepare(sql: string): StatementSync;
    close(): void;
  }
}
