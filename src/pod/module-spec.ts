import { ANNOTATION, INSTALL_STRATEGIES, VERSION_ENV } from '../labels.ts';
import type { ModuleSpec } from '../tunnel/module.ts';
import { MAX_VERSION_LENGTH } from './spec-size.ts';
import type { VPod, VPodContainer } from './vpod.ts';

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

function modulesOf(pod: VPod): PodModules {
  const { containers, installStrategy } = pod;
  const known = knownModules.get(containers);
  if (known !== undefined && known.installStrategy === installStrategy) return known;
  const entries = containers.map((container) => containerModuleOf(container, pod));
  const specs = entries.flatMap((entry) => (entry.kind === 'module' ? [entry.spec] : []));
  const modules = { installStrategy, entries, specs };
  knownModules.set(containers, modules);
  return modules;
}

function containerModuleOf(container: VPodContainer, { sizeFault, installStrategy }: VPod): ContainerModule {
  const invalid = (message: string): ContainerModule => {
    return { kind: 'invalid', container: container.name, message: sizeFault ?? message };
  };
  if (container.image === '' && sizeFault !== undefined) return invalid(sizeFault);
  // `.jar` anywhere in the image, since a URL may go on with a query.
  if (!container.image.includes('.jar')) return { kind: 'unsupported', container: container.name };
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
  const strategy = INSTALL_STRATEGIES.find((known) => known === installStrategy);
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
 * Why no module of a Pod can be installed. The annotation can change at any time, and an earlier version of the
 * controller took larger Pods, so what is installed already stays the Pod's.
 */
export function installFaultOf({ sizeFault, installStrategy }: VPod): string | undefined {
  if (sizeFault !== undefined) return sizeFault;
  if (installStrategy === undefined || INSTALL_STRATEGIES.some((known) => known === installStrategy)) return undefined;
  return `annotation ${ANNOTATION.installStrategy} must be one of ${INSTALL_STRATEGIES.join(', ')}`;
}

/** The modules that a vPod wants on its base. */
export function moduleSpecsOf(pod: VPod): readonly ModuleSpec[] {
  return modulesOf(pod).specs;
}
