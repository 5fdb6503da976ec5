export const parts: readonly string[];

/** Every test file as `test/src/clock.test.ts`. */
export function listTestFiles(root: string): string[];

/** Says whether a file is, or is in, what is named from test/ on: `nodes`, `src/wire`, `test/src/clock.test.ts`. */
export function isIn(file: string, name: string): boolean;

/** Says whether a file runs on the second generation of Node-RED, too. */
export function isOnEveryGeneration(file: string): boolean;
