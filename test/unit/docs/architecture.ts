/** What `test/architecture.test.ts` holds the sources to. A new folder or arrow is a decision: docs/contribute.md shows it too. */

export const EVERYWHERE = [
  'src/clock.ts',
  'src/errors.ts',
  'src/ip-address.ts',
  'src/labels.ts',
  'src/logger.ts',
  'src/lru-map.ts',
  'src/metrics.ts',
  'src/redact-url.ts',
  'src/report-limit.ts',
  'src/shortened.ts',
  'src/text-pool.ts',
  'src/token-bucket.ts',
];
/** What the rooms may use of the API server; credentials are the assembly's. */
const KUBE = ['src/kube', 'src/kube/events', 'src/kube/transport', 'src/kube/watch'];

/** Whom a folder or file may import besides itself; docs/contribute.md "Import directions" shows the same. */
export const ARROWS: Readonly<Record<string, readonly string[]>> = {
  'src/main.js': ['*'],
  'src/run.ts': ['*'],
  'src/assembly': ['*'],
  'src/manager.ts': EVERYWHERE,
  'src/clock.ts': [],
  'src/errors.ts': [],
  'src/ip-address.ts': [],
  'src/labels.ts': [],
  'src/logger.ts': ['src/redact-url.ts'],
  'src/lru-map.ts': [],
  'src/metrics.ts': [],
  'src/redact-url.ts': [],
  'src/report-limit.ts': ['src/token-bucket.ts'],
  'src/shortened.ts': [],
  'src/text-pool.ts': [],
  'src/token-bucket.ts': [],
  'src/config': EVERYWHERE,
  'src/queue': EVERYWHERE,
  'src/kube/auth': EVERYWHERE,
  'src/kube/transport': [...EVERYWHERE, 'src/kube/auth'],
  'src/kube': [...EVERYWHERE, 'src/kube/transport', 'src/queue'],
  'src/kube/watch': [...EVERYWHERE, 'src/kube', 'src/kube/transport', 'src/queue'],
  'src/kube/events': [...EVERYWHERE, 'src/kube', 'src/kube/transport', 'src/kube/watch', 'src/queue'],
  'src/reconcile': [...EVERYWHERE, 'src/config', ...KUBE, 'src/manager.ts', 'src/queue'],
  'src/kinds': [...EVERYWHERE, ...KUBE, 'src/reconcile'],
  // Each room of the platform: none imports another one.
  'src/platform/*': [
    ...EVERYWHERE,
    'src/config',
    'src/kinds',
    ...KUBE,
    'src/manager.ts',
    'src/queue',
    'src/reconcile',
    'src/server',
  ],
  'src/server': [...EVERYWHERE, 'src/manager.ts'],
  'src/tunnel': EVERYWHERE,
  'src/module': [...EVERYWHERE, 'src/queue', 'src/tunnel'],
  'src/lease': [...EVERYWHERE, ...KUBE, 'src/queue'],
  'src/pod': [...EVERYWHERE, ...KUBE, 'src/module', 'src/queue', 'src/tunnel'],
  'src/vnode': [...EVERYWHERE, 'src/kinds', ...KUBE, 'src/lease', 'src/module', 'src/pod', 'src/queue', 'src/tunnel'],
  'tunnels/arklet': [...EVERYWHERE, 'src/tunnel'],
  'tunnels/mqtt': [...EVERYWHERE, 'src/tunnel', 'tunnels/arklet'],
  'tunnels/http': [...EVERYWHERE, 'src/server', 'src/tunnel', 'tunnels/arklet'],
  'tunnels/index.ts': [...EVERYWHERE, 'src/tunnel', 'tunnels/http', 'tunnels/mqtt'],
};

/** Packages are known to one folder each; `express` to those that serve, `typebox` to those that have kinds. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'src/logger.ts': ['pino'],
  'src/metrics.ts': ['prom-client'],
  'src/queue': ['tinyqueue'],
  'src/kube/auth': ['@kubernetes/client-node', 'undici', 'yaml'],
  'src/kube/transport': ['undici'],
  'src/kinds': ['typebox'],
  'src/platform/*': ['express', 'typebox'],
  'src/platform/admission': ['@peculiar/x509', 'express', 'reflect-metadata'],
  'src/server': ['express'],
  'tunnels/http': ['axios', 'express'],
  'tunnels/mqtt': ['mqtt'],
};

/** Files that decide: no I/O, no waiting, no clock. They import each other's values only, and anybody's types. */
export const PURE = [
  'src/config/rules.ts',
  'src/config/variables.ts',
  'src/errors.ts',
  'src/ip-address.ts',
  'src/kinds/peers.ts',
  'src/kinds/pod-defaults.ts',
  'src/kinds/vnode-object.ts',
  'src/kube/merge-patch.ts',
  'src/kube/micro-time.ts',
  'src/kube/objects.ts',
  'src/kube/placement.ts',
  'src/kube/quantity.ts',
  'src/kube/resource-version.ts',
  'src/labels.ts',
  'src/lease/claim-order.ts',
  'src/lease/hand-over.ts',
  'src/lease/lease-hold.ts',
  'src/lease/lease.ts',
  'src/lease/member.ts',
  'src/lease/members.ts',
  'src/lru-map.ts',
  'src/module/failure.ts',
  'src/module/list-limit.ts',
  'src/module/message-order.ts',
  'src/module/module-ledger.ts',
  'src/module/module-record.ts',
  'src/module/record-transitions.ts',
  'src/platform/admission/body-budget.ts',
  'src/platform/admission/certificate-plan.ts',
  'src/platform/admission/certificates.ts',
  'src/platform/admission/review.ts',
  'src/platform/export/backends.ts',
  'src/platform/export/conflicts.ts',
  'src/platform/export/export-view.ts',
  'src/platform/export/exported-service.ts',
  'src/platform/rollout/batches.ts',
  'src/platform/rollout/rollout-events.ts',
  'src/platform/rollout/rollout-plan.ts',
  'src/platform/rollout/rollout-status.ts',
  'src/pod/base-plan.ts',
  'src/pod/claims.ts',
  'src/pod/command-conflicts.ts',
  'src/pod/contact-record.ts',
  'src/pod/container-status.ts',
  'src/pod/module-decision.ts',
  'src/pod/module-spec.ts',
  'src/pod/module-view.ts',
  'src/pod/name-owners.ts',
  'src/pod/pod-admission.ts',
  'src/pod/pod-events.ts',
  'src/pod/pod-memory.ts',
  'src/pod/pod-status-patch.ts',
  'src/pod/pod-status.ts',
  'src/pod/pre-stop.ts',
  'src/pod/removals.ts',
  'src/pod/spec-size.ts',
  'src/pod/succession.ts',
  'src/pod/vpod.ts',
  'src/pod/waiting-reason.ts',
  'src/pod/write-order.ts',
  'src/queue/backoff.ts',
  'src/queue/phase.ts',
  'src/redact-url.ts',
  'src/report-limit.ts',
  'src/shortened.ts',
  'src/text-pool.ts',
  'src/token-bucket.ts',
  'src/tunnel/base.ts',
  'src/tunnel/module.ts',
  'src/tunnel/tunnel.ts',
  'src/vnode/address.ts',
  'src/vnode/liveness.ts',
  'src/vnode/node-object.ts',
  'src/vnode/node-plan.ts',
  'src/vnode/restart-signs.ts',
  'src/vnode/tunnel-claim.ts',
  'tunnels/arklet/convert.ts',
  'tunnels/arklet/message-line.ts',
  'tunnels/arklet/messages.ts',
  'tunnels/arklet/parse.ts',
  'tunnels/arklet/read.ts',
  'tunnels/arklet/wire-value.ts',
  'tunnels/http/addresses.ts',
  'tunnels/mqtt/topics.ts',
];
/** Parts of Node without I/O; of `node:net` only what judges an address, of `node:crypto` only hashes. */
export const PURE_PARTS_OF_NODE = ['node:crypto', 'node:util', 'node:net'];

/** The entry of `ARROWS` that a file belongs to. */
export function areaOf(path: string): string {
  if (path in ARROWS) return path;
  const folder = path.slice(0, path.lastIndexOf('/'));
  return folder in ARROWS ? folder : folder.replace(/^(src\/platform)\/[^/]+$/, '$1/*');
}

/** Packages that a file may import. */
export function packagesOf(path: string): readonly string[] {
  return PACKAGES[path] ?? PACKAGES[path.slice(0, path.lastIndexOf('/'))] ?? PACKAGES[areaOf(path)] ?? [];
}

export const MAX_LINES = 400;
/** Too long, each with a bound that it must not pass. To be split; the entry goes then. */
export const OVERLONG: Readonly<Record<string, number>> = {};
