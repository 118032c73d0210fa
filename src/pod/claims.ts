import type { ContainerStatus } from '../kube/objects.ts';
import { fingerprintOf, type ModuleRecord } from '../module/module-record.ts';
import { imageIdOf, storedImageIdOf } from '../redact-url.ts';
import { type ModuleKey, type ModuleSpec, moduleKeyOf } from '../tunnel/module.ts';
import type { SpecsOf } from './removals.ts';
import { statusIn, type VPod } from './vpod.ts';

/** Who has a module of a base, and as what; Pods with the same fingerprint share it, others wait. */
export interface Claim {
  readonly owner: VPod;
  /** The last created of those that ask for it, also with other args or env: it says how new the version is. */
  readonly youngest: VPod;
  readonly spec: ModuleSpec;
  readonly fingerprint: string;
  /**
   * What is on the base is something else under the same name and version: no living Pod asks for that, or no install
   * for a Pod has brought it.
   */
  readonly isReplacement: boolean;
}

interface Claimant {
  readonly pod: VPod;
  readonly spec: ModuleSpec;
  readonly fingerprint: string;
}

export interface ClaimsInput {
  /** Oldest first. */
  readonly living: readonly VPod[];
  /** The Pods that are deleted or have ended, oldest first: asked for when their statuses matter. */
  readonly others: () => readonly VPod[];
  readonly recordOf: (key: ModuleKey) => ModuleRecord | undefined;
  readonly specsOf: SpecsOf;
}

/**
 * Settles who owns each module that living Pods ask for. The other Pods own nothing, but their statuses show the
 * modules that an earlier controller installed.
 */
export function claimsOf({ living, others, recordOf, specsOf }: ClaimsInput): Map<ModuleKey, Claim> {
  const claims = new Map<ModuleKey, Claim>();
  let former: ReadonlyMap<ModuleKey, readonly Claimant[]> | undefined;
  for (const [key, candidates] of claimantsOf(living, specsOf)) {
    const adoptedImage = (): string | undefined => {
      former ??= claimantsOf(others(), specsOf);
      return runningImageOf(candidates) ?? runningImageOf(former.get(key) ?? []) ?? ranImageOf(candidates);
    };
    const claim = claimOf(candidates, recordOf(key), adoptedImage);
    if (claim) claims.set(key, claim);
  }
  return claims;
}

function claimantsOf(pods: readonly VPod[], specsOf: SpecsOf): Map<ModuleKey, Claimant[]> {
  const claimants = new Map<ModuleKey, Claimant[]>();
  for (const pod of pods) {
    for (const spec of specsOf(pod)) {
      const key = moduleKeyOf(spec);
      const claimant = { pod, spec, fingerprint: fingerprintOf(spec) };
      const others = claimants.get(key);
      if (others) others.push(claimant);
      else claimants.set(key, [claimant]);
    }
  }
  return claimants;
}

function claimOf(
  claimants: readonly Claimant[],
  record: ModuleRecord | undefined,
  adoptedImage: () => string | undefined,
): Claim | undefined {
  const [oldest] = claimants;
  if (oldest === undefined) return undefined;
  const installed = record?.inFlight?.fingerprint ?? record?.fingerprint;
  // What an earlier controller installed has no fingerprint.
  const adopted = installed === undefined ? adoptedImage() : undefined;
  const isHolder = ({ spec, fingerprint }: Claimant): boolean =>
    installed === undefined ? imageIdOf(spec.url) === adopted : fingerprint === installed;
  // After a restart the image alone does not distinguish Pods with different args or env: the one that ran it has it.
  const runner = claimants.find((claimant) => hasRun(claimant) && isHolder(claimant));
  const holder = runner ?? claimants.find(isHolder);
  // A Pod of which nothing can be installed keeps no other from it.
  const installable = claimants.find(({ pod }) => pod.sizeFault === undefined);
  const { pod: owner, spec, fingerprint } = holder ?? installable ?? oldest;
  const isOtherThere = record?.state !== undefined && (installed ?? adopted) !== undefined;
  const youngest = claimants.at(-1)?.pod ?? owner;
  const isIntruder = record?.state !== undefined && record.intruder !== undefined;
  return { owner, youngest, spec, fingerprint, isReplacement: isIntruder || (holder === undefined && isOtherThere) };
}

/** What a Pod's own status says that its container runs: known even after a restart of the controller. */
function runningImageOf(claimants: readonly Claimant[]): string | undefined {
  return imageOfFirst(claimants, (status) => status.state?.running !== undefined);
}

/** What ran last: a container that waits because its image changed must not be taken for the new one. */
function ranImageOf(claimants: readonly Claimant[]): string | undefined {
  return imageOfFirst(claimants, hasImage);
}

function hasImage({ imageID }: ContainerStatus): boolean {
  return imageID !== '';
}

function hasRun(claimant: Claimant): boolean {
  const status = statusOf(claimant);
  return status !== undefined && hasImage(status);
}

function imageOfFirst(claimants: readonly Claimant[], fits: (status: ContainerStatus) => boolean): string | undefined {
  for (const claimant of claimants) {
    const status = statusOf(claimant);
    if (status !== undefined && fits(status)) return storedImageIdOf(status.imageID);
  }
  return undefined;
}

function statusOf({ pod, spec }: Claimant): ContainerStatus | undefined {
  return statusIn(pod.status.containerStatuses, spec.name);
}
