/** What the operating system or the database calls the failure: `ENOSPC`, `LEVEL_LOCKED`. */
export function describeStoreFailure(error: unknown): string {
  const codes: string[] = [];
  if (error instanceof SyntaxError) return 'unreadable content';
  for (let current = error; current instanceof Error && codes.length < 3; current = current.cause) {
    codes.push(String((current as { code?: unknown }).code ?? current.message));
  }
  return codes.join(', ') || 'unknown reason';
}
