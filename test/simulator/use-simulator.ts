import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { ServiceCalls } from './service-calls';

/** Number of the handset that sends and receives in most tests. */
export const handset = '6421555123';
/** Number of a second handset. */
export const other = '6421555124';
/** Number of the organisation, to which handsets send. */
export const number = '642100000001';

/** The simulator of the running test. */
export let simulator: Simulator;
/** Calls the endpoints of {@link simulator}. */
export let calls: ServiceCalls;

/** Replaces the running simulator, if any, with a new one. By default, its polls answer immediately. */
export async function start(options: SimulatorOptions = {}): Promise<void> {
  await stop();
  simulator = await startSimulator({ waitMs: 0, ...options });
  calls = new ServiceCalls(simulator);
}

async function stop(): Promise<void> {
  await calls?.close();
  await simulator?.close();
}

/** Ends the simulator after each test of a suite. If there are options, starts one with them before each test. */
export function useSimulator(options?: () => SimulatorOptions): void {
  if (options) beforeEach(() => start(options()));
  afterEach(stop);
}
