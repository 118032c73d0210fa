import type { Place } from './conflicts.ts';
import type { CachedExportService } from './export-service.ts';

/** What a Service has. */
export interface Holding {
  /** UID of the Service. */
  readonly owner: string;
  /** In which it is not left out. */
  readonly groups: readonly string[];
  readonly places: readonly Place[];
  /** Its hosts that another namespace shared. */
  readonly guestAt: readonly string[];
}

/**
 * Holding that an ExportService records; undefined: none. The record outlives every process, and no user can write
 * it.
 */
export function holdingOf({ controller, status, isDeleting }: CachedExportService): Holding | undefined {
  if (controller === undefined || status === undefined || isDeleting) return undefined;
  const { BCSGroup, ports, guestAt = [] } = status;
  const leftOutOf: readonly string[] | undefined = status.leftOutOf;
  const groups = BCSGroup.filter((group) => leftOutOf?.includes(group) === false);
  if (groups.length === 0) return undefined;
  const places = ports.map((port) => placeOf({ ...port, host: port.BCSVHost }));
  return { owner: controller.uid, groups, places, guestAt };
}

/** The part of a port that balancers can give to one Service only. */
export function placeOf({ protocol, servicePort, host, path }: Place): Place {
  return { protocol, servicePort, host, path };
}
