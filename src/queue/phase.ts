/** A fixed number in [0, 1) for each name, evenly spread: what is done for every Node is done at its own moment. */
export function phaseOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index++) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  // FNV-1a alone leaves names that differ in the last character close together.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
}
