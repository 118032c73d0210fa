/**
 * Negative when `a` is older than `b`. Resource versions of one kind are decimal numbers in order of time
 * (guaranteed since Kubernetes 1.35), of any length, so they are compared as text.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
