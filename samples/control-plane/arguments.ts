import type { Layout } from './layout.ts';

/** Seen in tokens, as in a cluster made by kubeadm. Nothing is asked there. */
const SERVICE_ACCOUNT_ISSUER = 'https://kubernetes.default.svc.cluster.local';
const SERVICE_CLUSTER_IP_RANGE = '10.96.0.0/16';
/** etcd wants addresses to advertise to other members; there are none, so nobody ever dials this. */
const NEVER_DIALLED = 'http://127.0.0.1:0';

export function etcdArguments(layout: Layout, options: { unsafeNoFsync: boolean }): string[] {
  return [
    `--data-dir=${layout.etcdData}`,
    `--listen-client-urls=unix://${layout.etcdSocket}`,
    `--advertise-client-urls=${NEVER_DIALLED}`,
    `--listen-peer-urls=unix://${layout.etcdPeerSocket}`,
    `--initial-advertise-peer-urls=${NEVER_DIALLED}`,
    `--initial-cluster=default=${NEVER_DIALLED}`,
    '--enable-grpc-gateway=false',
    ...(options.unsafeNoFsync ? ['--unsafe-no-fsync'] : []),
  ];
}

export function apiServerArguments(layout: Layout, options: { port: number; auditLog: boolean }): string[] {
  return [
    `--etcd-servers=unix://${layout.etcdSocket}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${options.port}`,
    // The default is an address of a network card, which a machine without a network does not have.
    '--advertise-address=127.0.0.1',
    // Endpoints may not be loopback addresses: the Service `kubernetes` stays without any.
    '--endpoint-reconciler-type=none',
    `--service-cluster-ip-range=${SERVICE_CLUSTER_IP_RANGE}`,
    `--tls-cert-file=${layout.servingCertificate}`,
    `--tls-private-key-file=${layout.servingKey}`,
    `--client-ca-file=${layout.caCertificate}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    `--service-account-issuer=${SERVICE_ACCOUNT_ISSUER}`,
    `--service-account-key-file=${layout.serviceAccountKey}`,
    `--service-account-signing-key-file=${layout.serviceAccountKey}`,
    `--kubelet-certificate-authority=${layout.caCertificate}`,
    `--kubelet-client-certificate=${layout.kubeletClientCertificate}`,
    `--kubelet-client-key=${layout.kubeletClientKey}`,
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    ...(options.auditLog ? auditArguments(layout) : []),
  ];
}

function auditArguments(layout: Layout): string[] {
  return [
    `--audit-policy-file=${layout.auditPolicy}`,
    `--audit-log-path=${layout.auditLog}`,
    '--audit-log-format=json',
    // Each line is written before the client has its whole answer, so a count is exact at once.
    '--audit-log-mode=blocking',
    // In MB; without it the file is renamed at 100 MB, under the hands of its reader.
    '--audit-log-maxsize=1000000',
  ];
}

export function controllerManagerArguments(
  layout: Layout,
  options: { port: number; controllerAccounts: boolean },
): string[] {
  return [
    ...clientArguments(layout, layout.controllerManagerKubeconfig, options.port),
    ...(options.controllerAccounts ? ['--use-service-account-credentials=true'] : []),
    `--service-account-private-key-file=${layout.serviceAccountKey}`,
    `--root-ca-file=${layout.caCertificate}`,
    `--cluster-signing-cert-file=${layout.caCertificate}`,
    `--cluster-signing-key-file=${layout.caKey}`,
    `--service-cluster-ip-range=${SERVICE_CLUSTER_IP_RANGE}`,
  ];
}

export function schedulerArguments(layout: Layout, options: { port: number }): string[] {
  return clientArguments(layout, layout.schedulerKubeconfig, options.port);
}

function clientArguments(layout: Layout, kubeconfig: string, port: number): string[] {
  return [
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${layout.servingCertificate}`,
    `--tls-private-key-file=${layout.servingKey}`,
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    // One of each runs: no election, so no wait for a lease after a restart.
    '--leader-elect=false',
  ];
}
