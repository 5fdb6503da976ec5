import type { AccountsReport, EntriesReport, EntryActionName, EntryStateName } from '../runtime/account-report';

/** Why an answer is none: the permission is missing, what was asked for is not there, and so on. */
export type Refusal = 'denied' | 'missing' | 'unfit' | 'opening' | 'unreachable' | 'failed';

/** What was asked for, or why it is not to be had; `message` is what the server says of it. */
export type Answer<T> = { value: T } | { refusal: Refusal; status?: number; message?: string };

const timeoutMs = 30_000;

export function readAccounts(): Promise<Answer<AccountsReport>> {
  return ask<AccountsReport>('sms-account/state');
}

export async function readEntries(
  account: string,
  state: EntryStateName,
  { most, after }: { most: number; after?: string | undefined },
): Promise<Answer<EntriesReport>> {
  const query = new URLSearchParams({ state, most: String(most), ...(after === undefined ? undefined : { after }) });
  const answer = await ask<EntriesReport>(`sms-account/${encodeURIComponent(account)}/entries?${query}`);
  return 'status' in answer && answer.status === 503 ? { refusal: 'opening' } : answer;
}

export function decide(account: string, entry: string, action: EntryActionName): Promise<Answer<unknown>> {
  const url = `sms-account/${encodeURIComponent(account)}/entries/${encodeURIComponent(entry)}`;
  return ask(url, { type: 'POST', contentType: 'application/json; charset=utf-8', data: JSON.stringify({ action }) });
}

/** The editor's own way to ask, which knows where the admin API is and who is logged in. */
async function ask<T>(url: string, settings: JQueryAjaxSettings = {}): Promise<Answer<T>> {
  try {
    return { value: await $.ajax({ url, cache: false, timeout: timeoutMs, ...settings }) };
  } catch (error) {
    const { status = 0, responseJSON } = error as JQuery.jqXHR;
    const refusal = refusals[status] ?? (status === 0 ? 'unreachable' : 'failed');
    const message: unknown = responseJSON?.error?.message;
    return { refusal, status, ...(typeof message === 'string' ? { message } : undefined) };
  }
}

const refusals: Readonly<Record<number, Refusal>> = { 401: 'denied', 403: 'denied', 404: 'missing', 409: 'unfit' };
