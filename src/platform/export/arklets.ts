import { canonicalAddress } from '../../ip-address.ts';
import type { CachedNode } from '../../kinds/vnode-object.ts';
import { ANNOTATION } from '../../labels.ts';

interface Place {
  readonly ip: string | undefined;
  readonly port: string | undefined;
}

/** Addresses and ports of the arklets of all bases: several bases may share an address, each with a port of its own. */
export class Arklets {
  /** Places by the name of the Node. */
  readonly #places = new Map<string, Place>();
  /** Names of Nodes by address. */
  readonly #nodesAt = new Map<string, Set<string>>();

  /** Returns the names of the Nodes whose backends this concerns: none where nothing has changed. */
  put(node: CachedNode): Set<string> {
    const place = placeOf(node);
    const before = this.#places.get(node.name);
    if (before && before.ip === place.ip && before.port === place.port) return new Set();
    const concerned = this.remove(node.name);
    this.#places.set(node.name, place);
    if (place.ip !== undefined) {
      const names = this.#nodesAt.get(place.ip) ?? new Set();
      this.#nodesAt.set(place.ip, names.add(node.name));
      for (const name of names) concerned.add(name);
    }
    return concerned;
  }

  remove(name: string): Set<string> {
    const ip = this.#places.get(name)?.ip;
    this.#places.delete(name);
    if (ip === undefined) return new Set([name]);
    const names = this.#nodesAt.get(ip);
    const concerned = new Set(names);
    names?.delete(name);
    if (names?.size === 0) this.#nodesAt.delete(ip);
    return concerned.add(name);
  }

  /** `ip` is canonical. `nodeName`: of a base there, whatever address its Node shows. */
  isAt(ip: string, port: number, nodeName: string): boolean {
    const isOf = (name: string): boolean => this.#places.get(name)?.port === String(port);
    if (isOf(nodeName)) return true;
    for (const name of this.#nodesAt.get(ip) ?? []) if (isOf(name)) return true;
    return false;
  }
}

function placeOf({ addresses, annotations }: CachedNode): Place {
  const ip = addresses.find(({ type }) => type === 'InternalIP')?.address;
  return {
    ip: ip === undefined ? undefined : canonicalAddress(ip),
    port: annotations[ANNOTATION.arkletPort],
  };
}
