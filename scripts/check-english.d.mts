export function readComments(source: string): string[];
export function readTitles(source: string): string[];
