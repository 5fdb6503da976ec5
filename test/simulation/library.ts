import nodeCrypto from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { compileFunction } from 'node:vm';
import { transformSync } from 'esbuild';
import type { Way } from './plan';
import type { Random } from './random';

/** A mutation of one line. */
export interface Mutant {
  name: string;
  /** Path relative to the parameter `folder` of {@link applyMutant}, which is `src/` by default. */
  file: string;
  /** Code that the mutation replaces. Must occur exactly once. */
  search: string;
  replace: string;
  /** Subject of the schedules that must catch the mutant. Default: `in`. */
  way?: Way;
}

/** Settings of the globals that replace those of Node.js in `src/`. Each run sets them again. */
export interface Surroundings {
  random: Random | undefined;
  /** Called with an error that the library throws in a callback, where it would end the process. */
  onThrown: (error: unknown) => void;
  readonly signals: Signals;
}

/** Listeners on the `AbortSignal`s that the library creates. A simulation checks that none remain. */
export class Signals {
  #listeners = new Map<AbortSignal, Set<unknown>>();

  /** Number of listeners on signals that have not aborted. Listeners on aborted signals do not need to be removed. */
  get listeners(): number {
    let count = 0;
    for (const [signal, { size }] of this.#listeners) if (!signal.aborted) count += size;
    return count;
  }

  /** Forgets all earlier signals. */
  forget(): void {
    this.#listeners = new Map();
  }

  watch(signal: AbortSignal): void {
    const listeners = new Set<unknown>();
    this.#listeners.set(signal, listeners);
    const { addEventListener, removeEventListener } = signal;
    Object.assign(signal, {
      addEventListener: (...values: Parameters<typeof addEventListener>) => {
        listeners.add(values[1]);
        addEventListener.apply(signal, values);
      },
      removeEventListener: (...values: Parameters<typeof removeEventListener>) => {
        listeners.delete(values[1]);
        removeEventListener.apply(signal, values);
      },
    });
  }
}

/** The modules of `src/`, loaded separately, so that each copy has its own top-level state. */
export interface Library {
  surroundings: Surroundings;
  index: typeof import('../../src');
  store: typeof import('../../src/store/store');
}

type ModuleFunction = (...shadows: unknown[]) => void;

const source = join(dirname(dirname(__dirname)), 'src');
const requireFromSource = createRequire(join(source, 'index.ts'));
const compiled = new Map<string, ModuleFunction>();
const refused = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
] as const;
const shadowed = [...refused, 'Date', 'Math', 'performance', 'queueMicrotask', 'AbortController'] as const;

/**
 * Loads `src/` unchanged or with one mutation. The loaded code must get the time and random numbers from its clock.
 * Other sources, such as `Date.now`, throw an error.
 */
export function loadLibrary(mutant?: Mutant): Library {
  const surroundings: Surroundings = {
    random: undefined,
    onThrown: (error) => {
      throw error;
    },
    signals: new Signals(),
  };
  const shadows = createShadows(surroundings);
  const modules = new Map<string, { exports: unknown }>();
  const load = (path: string): unknown => {
    const existing = modules.get(path);
    if (existing) return existing.exports;
    const module = { exports: {} };
    modules.set(path, module);
    const localRequire = (name: string): unknown => {
      if (name.startsWith('.')) return load(findSource(join(dirname(path), name)));
      if (name === 'node:crypto') return createCrypto(surroundings);
      return requireFromSource(name);
    };
    const values = [module.exports, localRequire, module, path, dirname(path)];
    compile(path, mutant)(...values, ...shadowed.map((name) => shadows[name]));
    return module.exports;
  };
  const open = (name: string) => load(findSource(join(source, name)));
  return {
    surroundings,
    index: open('index') as Library['index'],
    store: open('store/store') as Library['store'],
  };
}

/**
 * Returns the content of a file with the mutation applied.
 *
 * @param folder folder that contains the file; default: `src/`
 * @throws Error if the code to replace does not occur exactly once
 */
export function applyMutant({ file, search, replace, name }: Mutant, folder = source): string {
  const text = readFileSync(join(folder, file), 'utf8');
  const parts = text.split(search);
  if (parts.length !== 2) throw new Error(`mutant "${name}": its line occurs ${parts.length - 1} times in ${file}`);
  return parts.join(replace);
}

function findSource(path: string): string {
  for (const candidate of [`${path}.ts`, join(path, 'index.ts')]) if (existsSync(candidate)) return candidate;
  throw new Error(`no source ${path}`);
}

function compile(path: string, mutant: Mutant | undefined): ModuleFunction {
  const name = relative(source, path).replaceAll('\\', '/');
  const isMutated = mutant?.file === name;
  const existing = isMutated ? undefined : compiled.get(path);
  if (existing) return existing;
  const text = isMutated ? applyMutant(mutant) : readFileSync(path, 'utf8');
  const { code } = transformSync(text, {
    loader: 'ts',
    format: 'cjs',
    target: 'es2022',
    tsconfigRaw: { compilerOptions: { useDefineForClassFields: true } },
  });
  const moduleFunction = compileFunction(
    code,
    ['exports', 'require', 'module', '__filename', '__dirname', ...shadowed],
    {
      filename: `simulated/${name}`,
    },
  ) as ModuleFunction;
  if (!isMutated) compiled.set(path, moduleFunction);
  return moduleFunction;
}

/** Creates the globals for `src/`. Each global that bypasses the clock of the library throws an error, e.g. `setTimeout`. */
function createShadows(surroundings: Surroundings): Partial<Record<(typeof shadowed)[number], unknown>> {
  const refuse = (name: string) => () => {
    throw new Error(`src/ uses ${name} instead of its clock`);
  };
  return {
    ...Object.fromEntries(refused.map((name) => [name, refuse(name)])),
    Date: new Proxy(Date, {
      get: (target, name, receiver) => (name === 'now' ? refuse('Date.now') : Reflect.get(target, name, receiver)),
      construct(target, values, newTarget) {
        if (values.length === 0) refuse('new Date()')();
        return Reflect.construct(target, values, newTarget);
      },
    }),
    Math: Object.defineProperties(Object.create(Math), { random: { value: refuse('Math.random') } }),
    performance: { now: refuse('performance.now') },
    AbortController: class extends AbortController {
      constructor() {
        super();
        surroundings.signals.watch(this.signal);
      }
    },
    queueMicrotask: (run: () => void) =>
      queueMicrotask(() => {
        try {
          run();
        } catch (error) {
          surroundings.onThrown(error);
        }
      }),
  };
}

/** Creates a `crypto` module whose random ids come from the seed. */
function createCrypto(surroundings: Surroundings): typeof nodeCrypto {
  const hex = (length: number) => {
    if (!surroundings.random) throw new Error('src/ asks for random bytes before a simulation has begun');
    return surroundings.random.hex(length);
  };
  const randomUUID = () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}` as const;
  return { ...nodeCrypto, randomBytes: (size: number) => Buffer.from(hex(size * 2), 'hex'), randomUUID } as never;
}
