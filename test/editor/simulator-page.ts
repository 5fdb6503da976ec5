import assert from 'node:assert/strict';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { type CallOptions, ServiceCalls } from '../simulator/service-calls';
import { startBrowser } from './browser';

export const first = '6421555123';
export const second = '6421555124';

/** The simulator of the running test, which {@link useSimulatorPage} or {@link start} started. */
export let simulator: Simulator;
/** The page of {@link simulator} in the browser. */
export let page: Page;
/** Errors on the console, uncaught exceptions, and requests to other addresses. */
export const problems: string[] = [];
let browser: Browser;
let context: BrowserContext;
/** Calls {@link simulator} as a flow does. */
let service: ServiceCalls;

/** Starts a simulator for each test, and asserts at its end that the page has reported no problem. */
export function useSimulatorPage(): void {
  before(async () => {
    browser = await startBrowser();
  });
  beforeEach(() => start());
  afterEach(async () => {
    const found = problems.splice(0);
    await context?.close();
    await service?.close();
    await simulator?.close();
    problems.length = 0;
    assert.deepEqual(found, []);
  });
  after(() => browser?.close());
}

/** Replaces the running simulator, if any, with a new one. */
export async function start(options: SimulatorOptions = {}): Promise<void> {
  await service?.close();
  await simulator?.close();
  simulator = await startSimulator({ waitMs: 300, statusDelayMs: 50, ...options });
  service = new ServiceCalls(simulator);
}

export async function open(options: BrowserContextOptions = {}, hash = ''): Promise<void> {
  context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US', ...options });
  context.setDefaultTimeout(30_000);
  page = await context.newPage();
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => {
    const { url } = message.location();
    if (['error', 'warning'].includes(message.type())) problems.push(`${message.text()} of ${url}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(simulator.pageUrl)) problems.push(`a request to ${request.url()}`);
  });
  await page.goto(`${simulator.pageUrl}${hash}`);
  await whenLoaded();
}

/** Waits until the page shows the credentials and a conversation, because it connects before it shows them. */
export async function whenLoaded(): Promise<void> {
  await page.locator('#credentials code').first().waitFor({ state: 'attached' });
  await page.locator('.phone[data-msisdn]').waitFor({ state: 'attached' });
}

export const phone = (msisdn: string): Locator => page.locator(`.phone[data-msisdn="${msisdn}"]`);

export const row = (msisdn: string): Locator => page.locator(`.handset[data-msisdn="${msisdn}"]`);

/** Opens the conversation of a handset. */
export async function choose(msisdn: string): Promise<Locator> {
  await row(msisdn).click();
  await phone(msisdn).waitFor();
  return phone(msisdn);
}

export async function goTo(part: 'Handsets' | 'Log' | 'Service' | 'Address book'): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name: part, exact: true }).click();
  await page.locator('nav a[aria-current="page"]', { hasText: part }).waitFor();
}

/** Writes a message as a handset. */
export async function write(msisdn: string, text: string): Promise<void> {
  const field = phone(msisdn).getByLabel(`Write as ${msisdn}`);
  await field.fill(text);
  await field.press('Enter');
}

/** Sends a message as a flow does. */
export const send = (params: Record<string, string>, options?: CallOptions) => service.send(params, options);

/** Lets a handset send a message to the flow, without the simulator's page. */
export const receive = (from: string, body: string) => simulator.receive({ from, to: '642100000001', body });

/** Fetches a message as a flow does. */
export const poll = () => service.pollIncoming();
