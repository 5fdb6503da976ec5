import type {
  AccountsReport,
  DecidedReport,
  EntriesReport,
  EntryActionName,
  EntryStateName,
  OptOutChangedReport,
  OptOutsReport,
  WaitingName,
  WaitingReport,
} from '../runtime/account-report';
import { say } from './wording';

/** The reason why a request failed. */
export type Refusal = 'denied' | 'missing' | 'unfit' | 'opening' | 'unreachable' | 'failed';

/** The value that a request returned, or the reason for its failure, with the server's message if there is one. */
export type Answer<T> = { value: T } | Refused;

interface Refused {
  refusal: Refusal;
  status?: number;
  message?: string;
}

const timeoutMs = 30_000;

export function readAccounts(): Promise<Answer<AccountsReport>> {
  return ask<AccountsReport>('sms-account/overview');
}

/** Selects a page of a list. */
export interface ListQuery {
  /** `next` of the previous page; blank: the first page. */
  after: string;
  /** Search text. Blank: all entries. */
  search: string;
}

export function readEntries(account: string, state: EntryStateName, query: ListQuery): Promise<Answer<EntriesReport>> {
  return readList(`${pathOf(account)}/entries`, { state, ...query });
}

export function readWaiting(account: string, list: WaitingName, query: ListQuery): Promise<Answer<WaitingReport>> {
  return readList(`${pathOf(account)}/waiting`, { list, ...query });
}

async function readList<Part>(url: string, data: object): Promise<Answer<Part>> {
  const answer = await ask<Part>(url, { data });
  return 'status' in answer && answer.status === 503 ? { refusal: 'opening' } : answer;
}

export function decide(account: string, entry: string, action: EntryActionName): Promise<Answer<unknown>> {
  return post(`${pathOf(account)}/entries/${encodeURIComponent(entry)}`, { action });
}

/** Performs an action on all entries of one state, e.g. all stored messages. The request has no time limit. */
export function decideAll(
  account: string,
  state: EntryStateName,
  action: EntryActionName,
): Promise<Answer<DecidedReport>> {
  return post(`${pathOf(account)}/entries`, { state, action }, 0);
}

/** @param search text that each listed number contains; blank for all numbers */
export function readOptOuts(account: string, search: string, next = ''): Promise<Answer<OptOutsReport>> {
  return ask(`${pathOf(account)}/optouts`, { data: { search, next } });
}

/** Reads the whole list of opted-out numbers as CSV. */
export function readOptOutsAsCsv(account: string): Promise<Answer<string>> {
  return ask(`${pathOf(account)}/optouts`, { headers: { Accept: 'text/csv' }, dataType: 'text' });
}

export function changeOptOuts(
  account: string,
  msisdns: readonly string[],
  action: 'out' | 'in',
): Promise<Answer<OptOutChangedReport>> {
  return post(`${pathOf(account)}/optouts`, { msisdns, action });
}

/**
 * Explains the failure of a request.
 *
 * @param keys catalog keys for reasons whose text depends on the request
 */
export function explainRefusal(
  { refusal, message }: Refused,
  keys: { readonly [Of in Refusal]?: string } = {},
): string {
  return message ?? say(`refusal.${keys[refusal] ?? refusal}`);
}

/** Starts an account without the data of its former store. */
export function forgetFormer(account: string): Promise<Answer<unknown>> {
  return post(`${pathOf(account)}/former`, { action: 'forget' });
}

function pathOf(account: string): string {
  return `sms-account/${encodeURIComponent(account)}`;
}

function post<T>(url: string, decision: object, timeout = timeoutMs): Promise<Answer<T>> {
  const data = JSON.stringify(decision);
  return ask(url, { type: 'POST', contentType: 'application/json; charset=utf-8', data, timeout });
}

/** Sends a request to the admin API. The editor's jQuery adds the server's address and the login. */
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
