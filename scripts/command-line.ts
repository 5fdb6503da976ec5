import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Parses the options of a command. `--help` prints the usage and ends the process. Refuses unknown options. */
export function readCommand<const Config extends ParseArgsConfig>(usage: string, config: Config) {
  if (process.argv.includes('--help')) {
    console.log(usage);
    process.exit();
  }
  try {
    return parseArgs(config);
  } catch (error) {
    return refuse(usage, (error as Error).message);
  }
}

/** Prints why the options are wrong, prints the usage, and ends the process. */
export function refuse(usage: string, problem: string): never {
  console.error(`${problem}\n${usage}`);
  process.exit(2);
}
