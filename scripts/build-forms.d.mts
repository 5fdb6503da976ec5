/** A script for the editor with its source map. */
interface Built {
  script: string;
  map: string;
}

/** Bundles the editor plugin. */
export function bundlePlugin(): Promise<Built>;

/** Compiles the form of a type. */
export function compileForm(type: string): Promise<Built>;

/** Puts the rows that forms share into a template. */
export function fillTemplate(template: string): string;
