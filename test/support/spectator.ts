import type { ControlPlane } from '../../samples/control-plane/control-plane.ts';
import type { NodeObject, PodObject } from '../../src/kube/objects.ts';

export interface Sighting {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: number;
  /** Of a Pod. */
  readonly nodeName: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly ready: string;
  readonly reason: string;
  readonly isGone: boolean;
}

/** Sees every change of the Nodes or Pods through a watch, for promises that say "at no time". */
export class Spectator {
  readonly sightings: Sighting[] = [];
  readonly #stop: () => void;

  private constructor(stop: () => void, sightings: Sighting[]) {
    this.#stop = stop;
    this.sightings = sightings;
  }

  static async watch(admin: ControlPlane['admin'], path: string): Promise<Spectator> {
    const sightings: Sighting[] = [];
    const watch = await admin.watch(path, ({ type, object }) => {
      const { metadata, spec, status } = object as NodeObject | PodObject;
      const ready = status?.conditions?.find((condition) => condition.type === 'Ready');
      sightings.push({
        name: metadata.name,
        uid: metadata.uid ?? '',
        resourceVersion: Number(metadata.resourceVersion),
        nodeName: spec && 'nodeName' in spec ? spec.nodeName : undefined,
        labels: metadata.labels ?? {},
        ready: ready?.status ?? 'None',
        reason: ready?.reason ?? '',
        isGone: type === 'DELETED',
      });
    });
    return new Spectator(() => watch.stop(), sightings);
  }

  of(name: string): Sighting[] {
    return this.sightings.filter((sighting) => sighting.name === name);
  }

  /** The names that were ever seen otherwise than Ready after they had been Ready. */
  everNotReady(): string[] {
    const wasReady = new Set<string>();
    const fell = new Set<string>();
    for (const { name, ready, isGone } of this.sightings) {
      if (ready === 'True' && !isGone) wasReady.add(name);
      else if (wasReady.has(name)) fell.add(name);
    }
    return [...fell];
  }

  stop(): void {
    this.#stop();
  }
}
