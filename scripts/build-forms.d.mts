/** Bundles the form of a type. */
export function bundleForm(type: string): Promise<{ script: string; map: string }>;

/** Puts the rows that forms share into a template. */
export function fillTemplate(template: string): string;

/** Builds the forms of all types into dist/nodes/. */
export function buildForms(): Promise<void>;
