import { setMaxListeners } from 'node:events';

/** Makes a signal that many calls may listen to at once. */
export function createStopSignal(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
