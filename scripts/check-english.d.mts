export function readTitles(source: string): string[];
