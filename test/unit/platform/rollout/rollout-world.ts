import { type ModulePod, projectModulePod, sharingOf } from '../../../../src/kinds/module-pod.ts';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { REVISION_LABEL } from '../../../../src/labels.ts';
import type { RolloutLimits } from '../../../../src/platform/rollout/rollout-limits.ts';
import { planRollout } from '../../../../src/platform/rollout/rollout-plan.ts';
import type { RolloutInput } from '../../../../src/platform/rollout/rollout-state.ts';
import { cannotShare, type PlannedTemplate } from '../../../../src/platform/rollout/rollout-template.ts';

export const ROLLING: RolloutLimits = {
  type: 'RollingUpdate',
  placement: 'SameBase',
  maxSurge: 1,
  maxUnavailable: 0,
  isLossless: false,
};

/** A Pod template of one version; `exclusive`: one copy of the name on a base, whatever its version. */
export interface Template {
  readonly revision: string;
  readonly version: string;
  readonly isExclusive?: boolean;
  readonly isBroken?: boolean;
  /** Which bases fit. Default: all. */
  readonly fits?: (base: string) => boolean;
}

export function podObject({ revision, version, isExclusive }: Template, name: string, createdAt = 0): PodObject {
  const labels = { app: 'shop', version, [REVISION_LABEL]: revision };
  const matchLabels: Record<string, string> = isExclusive ? { app: 'shop' } : { app: 'shop', version };
  const required = [{ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } }];
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      labels,
      creationTimestamp: new Date(createdAt).toISOString(),
    },
    spec: {
      containers: [
        {
          name: 'shop',
          image: `https://jars.example.com/shop-${version}.jar`,
          env: [
            { name: 'BIZ_VERSION', value: version },
            { name: 'REVISION', value: revision },
          ],
        },
      ],
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
    },
  };
}

export interface WorldOptions {
  readonly bases: readonly string[];
  readonly replicas: number;
  readonly limits?: Partial<RolloutLimits>;
  /** A base has one active version of a module: that of the Pod created last. Default false: all versions serve. */
  readonly hasOneActive?: boolean;
}

/** Bases, a scheduler and module Pods, as far as a rollout sees them. Nothing happens but what a test calls. */
export class RolloutWorld {
  replicas: number;
  limits: RolloutLimits;
  readonly usable: Set<string>;
  pods: ModulePod[] = [];
  template: Template = { revision: 'r1', version: '1' };
  current: string | undefined;
  updatedLimit = Number.POSITIVE_INFINITY;
  readonly templates = new Map<string, Template>();
  readonly #hasOneActive: boolean;
  #count = 0;

  constructor({ bases, replicas, limits, hasOneActive = false }: WorldOptions) {
    this.#hasOneActive = hasOneActive;
    this.usable = new Set(bases);
    this.replicas = replicas;
    this.limits = { ...ROLLING, ...limits };
    this.use(this.template);
  }

  use(template: Template): void {
    this.template = template;
    this.templates.set(template.revision, template);
  }

  /** As many Pods of the template as `replicas` asks for, available, one on each base. */
  static settled(options: WorldOptions): RolloutWorld {
    const world = new RolloutWorld(options);
    for (let step = 0; step < 3; step++) world.step();
    world.current = world.template.revision;
    return world;
  }

  get input(): RolloutInput {
    const { replicas, limits, pods, template, current, updatedLimit } = this;
    const former = current === template.revision ? undefined : this.templates.get(current ?? '');
    return {
      replicas,
      limits,
      pods,
      update: this.#planned(template),
      former: former && this.#planned(former),
      updatedLimit,
      isAvailable: ({ isReady }) => isReady,
      isReturning: ({ isReady, hasRun }) => isReady || hasRun,
    };
  }

  #planned(template: Template): PlannedTemplate {
    const isUsable = (name: string): boolean => this.usable.has(name) && template.fits?.(name) !== false;
    return {
      hash: template.revision,
      sharing: templateOf(template),
      isUsable,
      bases: () => [...this.usable].filter(isUsable),
    };
  }

  plan() {
    return planRollout(this.input);
  }

  /** Carries out a plan, and nothing else. */
  act(): boolean {
    const { deletions, creations } = this.plan();
    for (const { pod } of deletions) this.change(pod, { isDeleting: true });
    for (const { revision, place } of creations) {
      const template = this.templates.get(revision);
      if (template === undefined) throw new Error(`no template ${revision}`);
      const pod = projectModulePod(podObject(template, `pod-${++this.#count}`, this.#count * 1000));
      const pin = place === undefined ? {} : { replaces: place.uid, pinnedTo: place.nodeName };
      this.pods = [...this.pods, { ...pod, ...pin }];
    }
    return deletions.length + creations.length > 0;
  }

  /** The modules of deleted Pods are gone. */
  uninstall(): void {
    if (this.live.length < this.pods.length) this.pods = this.live;
    this.#activate();
  }

  /** Binds Pods as the scheduler does: an anti-affinity counts Pods that are being deleted too. */
  schedule(): void {
    for (const pod of this.pods.filter(({ nodeName }) => nodeName === undefined)) {
      const places = pod.pinnedTo === undefined ? [...this.usable] : [pod.pinnedTo];
      const nodeName = places.find(
        (base) => this.usable.has(base) && !this.pods.some((other) => other.nodeName === base && areApart(pod, other)),
      );
      if (nodeName !== undefined) this.change(pod, { nodeName });
    }
  }

  /** Bound Pods become ready, but for broken ones and those whose module another Pod holds. */
  install(): void {
    for (const pod of this.pods) {
      const isBroken = this.templates.get(pod.labels[REVISION_LABEL] ?? '')?.isBroken;
      const isHeldUp = this.pods.some(
        (other) => other !== pod && other.isReady && other.nodeName === pod.nodeName && holdsOther(pod, other),
      );
      if (pod.nodeName !== undefined && !pod.isDeleting && !pod.isReady && !isBroken && !isHeldUp) {
        if (!pod.isDeactivated) this.change(pod, { isReady: true, hasRun: true });
      }
    }
    this.#activate();
  }

  /** The version that came last to a base is the active one there; when it goes, the one before is active again. */
  #activate(): void {
    if (!this.#hasOneActive) return;
    const running = this.pods.filter(({ hasRun, nodeName }) => hasRun && nodeName !== undefined);
    for (const pods of Map.groupBy(running, ({ nodeName }) => nodeName).values()) {
      const last = pods.reduce((a, b) => (a.createdAt < b.createdAt ? b : a));
      for (const pod of pods) {
        const isActive = pod.labels.version === last.labels.version;
        if (pod.isDeactivated === isActive) this.change(pod, { isReady: isActive, isDeactivated: !isActive });
      }
    }
  }

  /** Nobody asked for that. */
  lose(pod: ModulePod | undefined): void {
    if (pod) this.pods = this.pods.filter(({ uid }) => uid !== pod.uid);
    this.#activate();
  }

  /** A base is gone with all that ran there. */
  loseBase(name: string): void {
    this.usable.delete(name);
    this.pods = this.pods.filter(({ nodeName }) => nodeName !== name);
  }

  step(): boolean {
    const before = this.pods;
    const hasActed = this.act();
    this.uninstall();
    this.schedule();
    this.install();
    return hasActed || this.pods !== before;
  }

  change(pod: ModulePod, change: Partial<ModulePod>): void {
    const now = { ...this.pods.find(({ uid }) => uid === pod.uid), ...change } as ModulePod;
    this.pods = this.pods.map((other) => (other.uid === pod.uid ? now : other));
  }

  get live(): ModulePod[] {
    return this.pods.filter(({ isDeleting }) => !isDeleting);
  }

  get available(): ModulePod[] {
    return this.live.filter(({ isReady }) => isReady);
  }

  /** Whether a base cannot have one of the old Pods beside a new one. */
  get hasExcluded(): boolean {
    const template = templateOf(this.template);
    return this.live.some((pod) => pod.labels[REVISION_LABEL] !== this.template.revision && cannotShare(pod, template));
  }

  of(revision: string): ModulePod[] {
    return this.live.filter(({ labels }) => labels[REVISION_LABEL] === revision);
  }
}

function templateOf(template: Template) {
  const { metadata, spec } = podObject(template, 'template');
  return sharingOf(metadata, spec);
}

function areApart(pod: ModulePod, other: ModulePod): boolean {
  return cannotShare({ ...pod, modules: [] }, { ...other, modules: [] });
}

function holdsOther(pod: ModulePod, other: ModulePod): boolean {
  return cannotShare({ ...pod, exclusions: [] }, { ...other, exclusions: [] });
}
