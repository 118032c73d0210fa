/** What `test/architecture.test.ts` holds the sources to. A new folder or arrow is a decision: README shows it too. */

export const EVERYWHERE = ['src/clock.ts', 'src/errors.ts', 'src/labels.ts', 'src/logger.ts', 'src/metrics.ts'];
/** Whom a folder or file may import besides itself; README "Import directions" shows the same. */
export const ARROWS: Readonly<Record<string, readonly string[]>> = {
  'src/main.js': ['*'],
  'src/run.ts': ['*'],
  'src/controller.ts': ['*'],
  'src/informers.ts': ['*'],
  'src/manager.ts': EVERYWHERE,
  'src/replica.ts': ['*'],
  'src/clock.ts': [],
  'src/errors.ts': [],
  'src/labels.ts': [],
  'src/logger.ts': [],
  'src/metrics.ts': [],
  'src/config': EVERYWHERE,
  'src/queue': EVERYWHERE,
  'src/kube': [...EVERYWHERE, 'src/queue'],
  'src/server': [...EVERYWHERE, 'src/manager.ts'],
  'src/tunnel': EVERYWHERE,
  'src/module': [...EVERYWHERE, 'src/queue', 'src/tunnel'],
  'src/lease': [...EVERYWHERE, 'src/kube', 'src/queue'],
  'src/pod': [...EVERYWHERE, 'src/kube', 'src/module', 'src/queue', 'src/tunnel'],
  'src/vnode': [...EVERYWHERE, 'src/kube', 'src/lease', 'src/module', 'src/pod', 'src/queue', 'src/tunnel'],
  'tunnels/arklet': [...EVERYWHERE, 'src/tunnel'],
  'tunnels/mqtt': [...EVERYWHERE, 'src/tunnel', 'tunnels/arklet'],
  'tunnels/http': [...EVERYWHERE, 'src/tunnel', 'tunnels/arklet'],
  'tunnels/index.ts': [...EVERYWHERE, 'src/tunnel', 'tunnels/http', 'tunnels/mqtt'],
};

/** Packages are known to one folder each; `express` to the two that serve. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'src/logger.ts': ['pino'],
  'src/metrics.ts': ['prom-client'],
  'src/queue': ['tinyqueue'],
  'src/kube': ['undici', 'yaml', '@kubernetes/client-node'],
  'src/server': ['express'],
  'tunnels/http': ['axios', 'express'],
  'tunnels/mqtt': ['mqtt'],
};

/** Files that decide: no I/O, no waiting, no clock. They import each other's values only, and anybody's types. */
export const PURE = [
  'src/config/rules.ts',
  'src/config/variables.ts',
  'src/errors.ts',
  'src/kube/resource-version.ts',
  'src/labels.ts',
  'src/lease/claim-order.ts',
  'src/lease/hand-over.ts',
  'src/lease/lease-hold.ts',
  'src/lease/lease.ts',
  'src/lease/member.ts',
  'src/lease/renewal-streak.ts',
  'src/module/failure.ts',
  'src/module/message-order.ts',
  'src/module/module-ledger.ts',
  'src/module/module-record.ts',
  'src/module/record-table.ts',
  'src/module/record-transitions.ts',
  'src/pod/base-plan.ts',
  'src/pod/claims.ts',
  'src/pod/command-conflicts.ts',
  'src/pod/contact-record.ts',
  'src/pod/container-status.ts',
  'src/pod/module-decision.ts',
  'src/pod/module-spec.ts',
  'src/pod/module-view.ts',
  'src/pod/pod-events.ts',
  'src/pod/pod-status-patch.ts',
  'src/pod/pod-status.ts',
  'src/pod/removals.ts',
  'src/pod/succession.ts',
  'src/pod/vpod.ts',
  'src/pod/waiting-reason.ts',
  'src/pod/write-order.ts',
  'src/queue/backoff.ts',
  'src/queue/phase.ts',
  'src/tunnel/base.ts',
  'src/tunnel/ip-address.ts',
  'src/tunnel/module.ts',
  'src/vnode/address.ts',
  'src/vnode/liveness.ts',
  'src/vnode/node-object.ts',
  'src/vnode/node-plan.ts',
  'src/vnode/restart-signs.ts',
  'src/vnode/tunnel-claim.ts',
  'src/vnode/vnode-object.ts',
  'tunnels/arklet/convert.ts',
  'tunnels/arklet/message-line.ts',
  'tunnels/arklet/messages.ts',
  'tunnels/arklet/parse.ts',
  'tunnels/arklet/read.ts',
  'tunnels/arklet/wire-value.ts',
  'tunnels/http/address-policy.ts',
  'tunnels/mqtt/topics.ts',
];
/** Parts of Node without I/O; of `node:net` only what judges an address, of `node:crypto` only hashes. */
export const PURE_PARTS_OF_NODE = ['node:crypto', 'node:util', 'node:net'];

export const MAX_LINES = 400;
/** Too long, each with a bound that it must not pass. To be split; the entry goes then. */
export const OVERLONG: Readonly<Record<string, number>> = {};
