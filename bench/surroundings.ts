import { type BenchNodeRed, type BenchNodeRedOptions, type Cost, startBenchNodeRed } from './node-red';
import type { BenchOptions, Contestant } from './row';
import { type ServiceProcess, startService } from './service-process';

/** What a row needs. */
export interface Surroundings {
  options: BenchOptions;
  service: ServiceProcess;
  nodeRed: BenchNodeRed;
  /** Makes a contestant; when asked for, its second round is profiled. */
  contestant(name: string, round: () => Promise<Cost>): Contestant;
}

/** What this package is held against: left out where it is held against another version of itself. */
const others: readonly string[] = ['rival', 'limit'];

let lastProfile = 0;

/** Runs `work` with a service and a Node-RED that have seen nothing else. */
export async function withSurroundings<T>(
  options: BenchOptions,
  work: (surroundings: Surroundings) => Promise<T>,
  nodeRedOptions: BenchNodeRedOptions = {},
): Promise<T> {
  const service = await startService();
  try {
    const nodeRed = await startBenchNodeRed(options.version, nodeRedOptions);
    try {
      await nodeRed.order('connect', { baseUrl: service.baseUrl });
      const contestant = (name: string, round: () => Promise<Cost>): Contestant => {
        let rounds = 0;
        const profiled = async () => {
          if (!options.profile || ++rounds !== 2) return round();
          await nodeRed.order('profileStart');
          const cost = await round();
          const file = `${process.cwd()}/${String(++lastProfile).padStart(2, '0')}-${name}.cpuprofile`;
          await nodeRed.order('profileStop', { file });
          return cost;
        };
        const inTurn = async () => {
          const cost = await profiled();
          await options.turns?.pass();
          return cost;
        };
        return { name, round: inTurn, isLeftOut: options.turns !== undefined && others.includes(name) };
      };
      return await work({ options, service, nodeRed, contestant });
    } finally {
      await nodeRed.stop();
    }
  } finally {
    service.stop();
  }
}
