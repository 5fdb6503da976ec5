/** Puts the rows that forms share into a template. */
export function fillTemplate(template: string): string;
