import type { NodeAPI } from 'node-red';
import { Flows } from './flows';

/** A node in line for a path; without `mount` while it is closed. */
interface Place {
  readonly id: string;
  mount: (() => void) | undefined;
}

/** Who answers at which path: of several nodes the one that was deployed first. */
export interface CallbackPlaces {
  /** Puts a node in line for a path. Returns whether it is first; otherwise `mount` is called when it has become so. */
  take(path: string, id: string, mount: () => void): boolean;
  /** The node is closed. When it is back by the time that the flows have started, it has its place again. */
  leave(path: string, id: string): void;
}

/** Begins with every path free. */
export function createCallbackPlaces(RED: NodeAPI): CallbackPlaces {
  const placesByPath = new Map<string, Place[]>();

  const moveUp = () => {
    for (const [path, places] of placesByPath) {
      const open = places.filter(({ mount }) => mount);
      placesByPath.set(path, open);
      if (open[0] !== places[0]) open[0]?.mount?.();
    }
  };

  return {
    take(path, id, mount) {
      const places = placesByPath.get(path) ?? [];
      placesByPath.set(path, places);
      const own = places.find((place) => place.id === id);
      if (own) own.mount = mount;
      else places.push({ id, mount });
      return places[0]?.id === id;
    },
    leave(path, id) {
      const own = placesByPath.get(path)?.find((place) => place.id === id);
      if (own) own.mount = undefined;
      Flows.of(RED).onNextStart(moveUp);
    },
  };
}
