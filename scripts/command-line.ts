import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Reads how a command was given. `--help` shows its usage, and ends the process; see {@link refuse} for what the command does not know. */
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

/** Says why a command cannot be done as it was given, and how it is given, and ends the process. */
export function refuse(usage: string, why: string): never {
  console.error(`${why}\n${usage}`);
  process.exit(2);
}
