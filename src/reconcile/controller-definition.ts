import type { RequestListener } from 'node:http';
import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { VariableName } from '../config/variables.ts';
import { CRDS, type Crd } from '../kube/crds.ts';
import type { EventType } from '../kube/events/event-correlator.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import type { Leader } from '../kube/leader.ts';
import type { Resources } from '../kube/resource.ts';
import type { Permit } from '../kube/transport/rest-lane.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';
import type { AnyKind, KindAccess } from './access.ts';
import type { Informers } from './informers.ts';
import type { WebhookRegistry, WebhookRule, Webhooks } from './webhooks.ts';

/** What a controller finds in its process. All of it is limited to what the controller declares. */
export interface ControllerContext {
  readonly config: Config;
  /** The version of this program. */
  readonly version: string;
  /** Caches of the kinds that the controller may list and watch. */
  readonly informers: Pick<Informers, 'get'>;
  /** Clients of the kinds that it declares. What they write belongs to the field manager `platform-{name}`. */
  readonly resources: Pick<Resources, 'of'>;
  /**
   * Lets one process of several act, by the Lease `platform-{name}` in the namespace of this Pod. The process runs it.
   * Throws for a controller that does not declare `leads`.
   */
  readonly leader: () => Leader;
  /** Whether this process may write now: the permit of each write of a controller that leads. */
  readonly permit: Permit;
  /** Records Events about any object. */
  readonly recorder: EventRecorder;
  /** Takes the handlers of the declared webhooks; the controller `admission` calls them. */
  readonly webhooks: WebhookRegistry;
  /** The handlers of all controllers of this process. */
  readonly reviews: Pick<Webhooks, 'find' | 'isOff'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** What a controller serves on the port of the feed. */
export interface ServedPath {
  /** The path that it answers, with all below it, such as `/v1/exportservices`. */
  readonly path: string;
  /** Called once the caches that the controller reads are whole; before that the answer is 503. */
  readonly listener: RequestListener;
}

/** A controller that is built, and does not run yet. */
export interface BuiltController {
  /** Started in this order when the caches that the controller reads are whole, and stopped in the reverse one. */
  readonly groups: readonly (readonly Runnable[])[];
  /** Readiness checks of `/readyz`, by name. */
  readonly readiness?: () => Readonly<Record<string, boolean>>;
  /** Default: nothing. */
  readonly served?: readonly ServedPath[];
}

/** A group of parts that start together, by the names that the log gives them. */
export function groupOf(parts: Readonly<Record<string, Pick<Runnable, 'run'>>>): Runnable[] {
  return Object.entries(parts).map(([name, part]) => ({ name, run: (signal) => part.run(signal) }));
}

/** A CRD that a controller installs. */
export interface CrdDefinition {
  readonly crd: Crd;
  /** Whether the built-in roles `edit` and `admin` may write its objects, or only read them, as `view` may. */
  readonly usersMay: 'edit' | 'view';
}

/** Events with the same meaning, a row of the table in docs/reference.md. */
export interface EventDefinition {
  /** The kind that they are about. */
  readonly about: string;
  readonly type: EventType;
  readonly reasons: readonly string[];
  readonly meaning: string;
}

/**
 * One controller, as `CONTROLLERS` names it, with all that it needs. `npm run manifests` makes roles, webhook
 * configurations, chart values and reference tables from it. `C` is what `build` gets.
 */
export interface ControllerDefinition<C = ControllerContext> {
  readonly name: string;
  /** What it does, as a noun phrase, for the table of controllers in docs/reference.md. */
  readonly summary: string;
  /** Kinds that it reads and writes, besides what follows from the other fields (`accessOf`). */
  readonly access: readonly KindAccess[];
  /** Whether one process of several acts. Default false. */
  readonly leads?: boolean;
  /** Installed before its informers start. Without one of them this controller waits, and no other does. */
  readonly crds?: readonly CrdDefinition[];
  readonly webhooks?: readonly WebhookRule[];
  readonly events?: readonly EventDefinition[];
  /** Environment variables that controllers of the core do not read; the chart takes them in `platform.config`. */
  readonly variables?: readonly VariableName[];
  /** Metrics that only this controller changes, by their names in `Metrics`. */
  readonly metrics?: readonly (keyof Metrics)[];
  /** Asks the context for all that it needs, informers too: what it does not ask for is not watched. */
  build(context: C): BuiltController | Promise<BuiltController>;
}

/** Environment variables of the port of the feed, of each controller that serves something there. */
export const FEED_VARIABLES: readonly VariableName[] = [
  'EXPORT_PORT',
  'EXPORT_CERT_PATH',
  'EXPORT_KEY_PATH',
  'EXPORT_TOKENS_PATH',
  'CATALOG_TOKENS_PATH',
];

const LEASES: AnyKind = { group: 'coordination.k8s.io', plural: 'leases' };
const EVENTS: AnyKind = { group: '', plural: 'events' };

/** All that a controller does with the API, with what follows from its CRDs, its Events and its Lease. */
export function accessOf(
  definition: Pick<ControllerDefinition<never>, 'access' | 'leads' | 'events' | 'crds'>,
): KindAccess[] {
  const { access, leads = false, events = [], crds = [] } = definition;
  const names = crds.map(({ crd }) => crd.metadata.name);
  const installs: KindAccess[] = [
    { kind: CRDS, verbs: ['create'], use: 'installCrd: a CRD cannot be limited by name before it exists.' },
    { kind: CRDS, verbs: ['get', 'patch'], names, use: 'installCrd: the CRDs of the platform.' },
  ];
  const leases: KindAccess = {
    kind: LEASES,
    verbs: ['get', 'create', 'patch'],
    namespace: 'own',
    use: 'Leader: which process acts. A Lease cannot be limited by name before it exists.',
  };
  const recorded: KindAccess = {
    kind: EVENTS,
    verbs: ['create', 'patch'],
    use: 'EventRecorder: Events about objects in any namespace.',
    notConfined: 'harm nothing',
  };
  return [
    ...access,
    ...(names.length > 0 ? installs : []),
    ...(events.length > 0 ? [recorded] : []),
    ...(leads ? [leases] : []),
  ];
}
