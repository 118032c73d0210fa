import type { ControlPlaneOptions } from '../../../samples/control-plane/control-plane.ts';
import { MANY_PODS } from '../../support/cluster-settings.ts';

/** How the control plane and the broker are set up. */
export interface Settings {
  readonly controlPlane: ControlPlaneOptions;
  /** Lines of mosquitto.conf; undefined: those that docs/install.md recommends. */
  readonly broker?: string;
  /** Bases have a connection each. Default: they share one, which is cheaper. */
  readonly hasOwnConnections?: boolean;
}

/** As in an installation, so that priority and fairness treat every component as there. */
const ACCOUNTS = { controllerAccounts: true };

/** Wide limits, no wait for the disk: what is measured is work, not a queue. */
const WIDE: ControlPlaneOptions = {
  ...ACCOUNTS,
  extraArgs: {
    ...MANY_PODS.extraArgs,
    'kube-apiserver': ['--max-requests-inflight=3000', '--max-mutating-requests-inflight=2000'],
  },
};

export const SETTINGS = {
  wide: { controlPlane: WIDE },
  /** As Kubernetes comes: 400 reads and 200 writes in flight, etcd waits for the disk. */
  'stock API server': { controlPlane: { ...MANY_PODS, ...ACCOUNTS, unsafeNoFsync: false } },
  /** As Mosquitto comes: 20 messages in flight to a client, 1,000 queued, more are dropped. */
  'stock Mosquitto': {
    controlPlane: WIDE,
    broker: 'sys_interval 1\n',
    // Its limits are those of one client.
    hasOwnConnections: true,
  },
} as const satisfies Record<string, Settings>;

export type SettingsName = keyof typeof SETTINGS;
