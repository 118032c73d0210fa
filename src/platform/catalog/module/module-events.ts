import type { EventDefinition } from '../../../reconcile/controller-definition.ts';
import { configsText } from './configs-in-force.ts';
import { MODULE_ROLLBACK_EVENTS } from './module-rollback.ts';
import type { ModuleCondition, ModuleStatus } from './module-status-schema.ts';

export const MODULE_EVENTS: readonly EventDefinition[] = [
  ...MODULE_ROLLBACK_EVENTS,
  {
    about: 'Module',
    type: 'Normal',
    reasons: ['Released'],
    meaning: 'A release has come into force: the workload has its jar now.',
  },
  {
    about: 'Module',
    type: 'Normal',
    reasons: ['Configured'],
    meaning: 'Another version of its configuration has come into force: the workload has it now.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['ConfigMissing'],
    meaning:
      'A ModuleConfig that the Module names, or the version of it, is not there or not readable. What was in force runs on.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['ReleaseMissing'],
    meaning: 'Nobody has published the release that the Module names. What was in force runs on.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['Restored'],
    meaning: 'Somebody else has changed a field that the Module composes. The change was undone.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['Contested'],
    meaning:
      'Somebody else changes a field that the Module composes again and again. It is changed back less and less often, every 15 min in the end.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['Altered'],
    meaning: 'A webhook drops or changes labels or annotations of the workload or the Service of a Module.',
  },
  {
    about: 'Module',
    type: 'Warning',
    reasons: ['NotComposed'],
    meaning: 'The workload or the Service of a Module could not be written. The message says why.',
  },
];

type StatusEvent = readonly [type: 'Normal' | 'Warning', reason: string, message: string];

/** Events for the changes between two statuses. */
export function statusEvents(before: ModuleStatus | undefined, status: ModuleStatus): StatusEvent[] {
  const { release } = status;
  const isReleased =
    release !== undefined && (release.id !== before?.release?.id || release.image !== before.release.image);
  const configs = configsText(release?.configs ?? []);
  const isConfigured = configs !== configsText(before?.release?.configs ?? []);
  const changed = status.conditions.filter(({ type, status: value, reason }) => {
    const former = before?.conditions.find((condition) => condition.type === type);
    return former?.status !== value || former.reason !== reason;
  });
  return [
    ...(isReleased ? [['Normal', 'Released', `release ${release.id} is in force: ${release.image}`] as const] : []),
    ...(isConfigured
      ? [['Normal', 'Configured', configs === '' ? 'no configuration is in force' : `${configs} is in force`] as const]
      : []),
    ...changed.flatMap((condition): StatusEvent[] => {
      const event = eventOf(condition);
      return event === undefined ? [] : [[...event, condition.message]];
    }),
  ];
}

const NOT_COMPOSED = ['NotComposable', 'NameTaken', 'NotPermitted', 'Refused', 'Unwatched'];

/** Type and reason of the event for a condition that has changed. Undefined: there is none. */
function eventOf({ type, status, reason }: ModuleCondition): readonly ['Warning', string] | undefined {
  if (type === 'ReleaseFound') return status === 'False' ? ['Warning', 'ReleaseMissing'] : undefined;
  if (type === 'ConfigFound') return status === 'False' ? ['Warning', 'ConfigMissing'] : undefined;
  if (type === 'Contested') return ['Warning', 'Contested'];
  if (type === 'Altered') return ['Warning', 'Altered'];
  return type === 'Ready' && NOT_COMPOSED.includes(reason) ? ['Warning', 'NotComposed'] : undefined;
}
