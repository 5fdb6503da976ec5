import type { badgeWords } from '../nodes/badge-words.js';
import type { reasons } from '../src/reasons.js';

/** A script for the editor with its source map. */
interface Built {
  script: string;
  map: string;
}

/** The errors of the compiled library by their reasons. */
export function readReasons(): typeof reasons;

/** The English words of badges. */
export function readBadgeWords(): typeof badgeWords;

/** Bundles the editor plugin. */
export function bundlePlugin(): Promise<Built>;

/** Compiles the form of a type. */
export function compileForm(type: string): Promise<Built>;

/** Puts the rows that forms share into a template. */
export function fillTemplate(template: string): string;

/** Writes the pages of the plugin and of all types into dist/nodes/. */
export function buildForms(): Promise<void>;
