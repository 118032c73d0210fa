import { type ModuleKey, type ModuleState, moduleKeyOf } from '../tunnel/module.ts';
import type { ModuleRecord } from './module-record.ts';
import type { RecordTable } from './record-table.ts';

/** An install whose end the next list may show, while another version of the name is active by the lists so far. */
export interface InstallBesideActive {
  readonly key: ModuleKey;
  readonly activeKey: ModuleKey;
}

/** The installs that the next list may show as ended beside an active version. */
export function installsBesideActive(records: RecordTable): InstallBesideActive[] {
  const installs: InstallBesideActive[] = [];
  for (const record of records.values()) {
    if (record.unconfirmed !== 'install' && record.inFlight?.command !== 'install') continue;
    const active = records.siblingsOf(record.id).find(isSettledIn('ACTIVATED'));
    if (active) installs.push({ key: moduleKeyOf(record.id), activeKey: moduleKeyOf(active.id) });
  }
  return installs;
}

/**
 * Whether the list made the installed versions the active ones: true, or false where the version before stayed active;
 * undefined where it shows neither.
 */
export function shownByInstalls(
  installs: readonly InstallBesideActive[],
  recordOf: (key: ModuleKey) => ModuleRecord | undefined,
): boolean | undefined {
  let shown: boolean | undefined;
  for (const { key, activeKey } of installs) {
    const [installed, before] = [recordOf(key), recordOf(activeKey)];
    if (installed === undefined || before === undefined) continue;
    if (isSettledIn('ACTIVATED')(installed) && isSettledIn('DEACTIVATED')(before)) shown = true;
    else if (isSettledIn('DEACTIVATED')(installed) && isSettledIn('ACTIVATED')(before)) shown = false;
  }
  return shown;
}

/** No command is under way, and a list has confirmed the state. */
function isSettledIn(state: ModuleState): (record: ModuleRecord) => boolean {
  return (record) => record.state === state && record.inFlight === undefined && record.unconfirmed === undefined;
}
