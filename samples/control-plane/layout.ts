import { join } from 'node:path';
import type { ComponentName } from './versions.ts';

/** Where everything of one control plane lies, below its temporary directory. */
export function layoutOf(directory: string) {
  const inside = (name: string) => join(directory, name);
  return {
    directory,
    caCertificate: inside('ca.crt'),
    caKey: inside('ca.key'),
    /** Serves the API server, the controller manager and the scheduler: all are 127.0.0.1. */
    servingCertificate: inside('serving.crt'),
    servingKey: inside('serving.key'),
    /** Shown by the API server to kubelets, for logs and exec. */
    kubeletClientCertificate: inside('kubelet-client.crt'),
    kubeletClientKey: inside('kubelet-client.key'),
    serviceAccountKey: inside('service-account.key'),
    controllerManagerKubeconfig: inside('controller-manager.kubeconfig'),
    schedulerKubeconfig: inside('scheduler.kubeconfig'),
    kubeconfigs: inside('kubeconfigs'),
    etcdData: inside('etcd'),
    /** Sockets, so that etcd takes no port and nobody outside the directory reaches it. */
    etcdSocket: inside('etcd.sock'),
    etcdPeerSocket: inside('etcd-peer.sock'),
    auditPolicy: inside('audit-policy.yaml'),
    auditLog: inside('audit.jsonl'),
    logOf: (component: ComponentName) => inside(`${component}.log`),
  };
}

export type Layout = ReturnType<typeof layoutOf>;
