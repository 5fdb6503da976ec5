import { join } from 'node:path';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { NodeRedProcess } from '../node-red-process';
import { createTemporaryFolder } from '../temporary-folder';

/** The parts of a test. A new test gets new parts. */
export interface Machine {
  simulator: Simulator;
  nodeRed: NodeRedProcess;
  /** Folder for the files of the test. */
  folder: string;
  /** File for the observations of the flows. */
  observed: string;
}

/**
 * Gives each test of a `describe` a simulator, a folder, and a Node-RED that is not started yet. Removes them after the
 * test.
 */
export function useMachine(options: SimulatorOptions = {}): Machine {
  const machine = {} as Machine;
  beforeEach(async () => {
    machine.folder = createTemporaryFolder('sms-reliability');
    machine.observed = join(machine.folder, 'observed.jsonl');
    machine.simulator = await startSimulator(options);
    machine.nodeRed = new NodeRedProcess();
  });
  afterEach(async () => {
    await machine.nodeRed.kill();
    await machine.simulator.close();
  });
  return machine;
}

/** Receives a message from a handset at the simulator. */
export function receive({ simulator }: Pick<Machine, 'simulator'>, body: string) {
  return simulator.receive({ from: '64215550001', to: '64215559999', body });
}
