import { ANNOTATION, INSTALL_STRATEGIES, VERSION_ENV } from '../labels.ts';
import type { ModuleSpec } from '../tunnel/module.ts';
import type { VPod, VPodContainer } from './vpod.ts';

const MAX_VERSION_LENGTH = 128;

/** What one container of a vPod asks for. */
export type ContainerModule =
  | { readonly kind: 'module'; readonly container: string; readonly spec: ModuleSpec }
  /** Its image is no jar: no module, and nothing that a base can run. */
  | { readonly kind: 'unsupported'; readonly container: string }
  /** A jar, but the manifest does not say what to install. */
  | { readonly kind: 'invalid'; readonly container: string; readonly message: string };

interface PodModules {
  readonly installStrategy: string | undefined;
  readonly entries: readonly ContainerModule[];
  readonly specs: readonly ModuleSpec[];
}

/** A plan asks several times for the modules of each Pod. By its containers, which copies of a Pod share. */
const knownModules = new WeakMap<VPod['containers'], PodModules>();

/** The modules of a vPod, one per container, in spec order. */
export function containerModulesOf(pod: VPod): readonly ContainerModule[] {
  return modulesOf(pod).entries;
}

function modulesOf({ containers, installStrategy }: VPod): PodModules {
  const known = knownModules.get(containers);
  if (known !== undefined && known.installStrategy === installStrategy) return known;
  const entries = containers.map((container) => containerModuleOf(container, installStrategy));
  const specs = entries.flatMap((entry) => (entry.kind === 'module' ? [entry.spec] : []));
  const modules = { installStrategy, entries, specs };
  knownModules.set(containers, modules);
  return modules;
}

function containerModuleOf(container: VPodContainer, strategyText: string | undefined): ContainerModule {
  // `.jar` anywhere in the image, since a URL may go on with a query.
  if (!container.image.includes('.jar')) return { kind: 'unsupported', container: container.name };
  const invalid = (message: string): ContainerModule => ({ kind: 'invalid', container: container.name, message });
  if (container.hasEnvFrom) return invalid('envFrom is not supported for a module, list its values in env');
  // As everywhere in Kubernetes, the last of two values counts.
  const env = new Map(container.env.map((entry) => [entry.name, entry]));
  const unresolved = [...env.values()].find((entry) => entry.value === undefined);
  if (unresolved) {
    return invalid(`env ${unresolved.name}: valueFrom is not supported for a module, give a value`);
  }
  const version = env.get(VERSION_ENV)?.value ?? '';
  if (version === '') return invalid(`env ${VERSION_ENV} is missing: it must be the module's version`);
  if (version.length > MAX_VERSION_LENGTH || /\p{Cc}/u.test(version)) {
    return invalid(
      `env ${VERSION_ENV} must have at most ${MAX_VERSION_LENGTH} characters, none of them a control character`,
    );
  }
  const strategy = INSTALL_STRATEGIES.find((known) => known === strategyText);
  const envs: Record<string, string> = {};
  for (const { name, value } of env.values()) if (name !== VERSION_ENV && value !== undefined) envs[name] = value;
  const { name, image: url, args } = container;
  return {
    kind: 'module',
    container: name,
    spec: { name, version, url, args, envs, ...(strategy ? { strategy } : {}) },
  };
}

/**
 * Why the modules of a Pod cannot be installed as its annotation asks. The annotation can change at any time, so
 * what is installed already stays the Pod's.
 */
export function strategyFaultOf({ installStrategy }: VPod): string | undefined {
  if (installStrategy === undefined || INSTALL_STRATEGIES.some((known) => known === installStrategy)) return undefined;
  return `annotation ${ANNOTATION.installStrategy} must be one of ${INSTALL_STRATEGIES.join(', ')}`;
}

/** The modules that a vPod wants on its base. */
export function moduleSpecsOf(pod: VPod): readonly ModuleSpec[] {
  return modulesOf(pod).specs;
}
