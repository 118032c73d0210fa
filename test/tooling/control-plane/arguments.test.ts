import { describe, expect, it } from 'vitest';
import {
  apiServerArguments,
  controllerManagerArguments,
  etcdArguments,
  schedulerArguments,
} from '../../../samples/control-plane/arguments.ts';
import { layoutOf } from '../../../samples/control-plane/layout.ts';

const layout = layoutOf('/tmp/cluster');

describe('etcd', () => {
  it('listens on sockets in the directory and on no port', () => {
    const listens = etcdArguments(layout, { unsafeNoFsync: true }).filter((argument) =>
      argument.startsWith('--listen'),
    );
    expect(listens).toEqual([
      '--listen-client-urls=unix:///tmp/cluster/etcd.sock',
      '--listen-peer-urls=unix:///tmp/cluster/etcd-peer.sock',
    ]);
  });

  it('waits for the disk only when asked to', () => {
    expect(etcdArguments(layout, { unsafeNoFsync: true })).toContain('--unsafe-no-fsync');
    expect(etcdArguments(layout, { unsafeNoFsync: false })).not.toContain('--unsafe-no-fsync');
  });
});

describe('the API server', () => {
  const args = apiServerArguments(layout, { port: 20_001, auditLog: false });

  it('authorizes by role and writes no endpoints of its own', () => {
    expect(args).toContain('--authorization-mode=Node,RBAC');
    expect(args).toContain('--endpoint-reconciler-type=none');
  });

  it('audits only when asked to, and then before the answer is complete', () => {
    expect(args.filter((argument) => argument.startsWith('--audit'))).toEqual([]);
    expect(apiServerArguments(layout, { port: 20_001, auditLog: true })).toContain('--audit-log-mode=blocking');
  });
});

describe('kube-controller-manager', () => {
  it('has an account for each of its controllers only when asked to', () => {
    const argument = '--use-service-account-credentials=true';
    const argsWith = (controllerAccounts: boolean) =>
      controllerManagerArguments(layout, { port: 20_001, controllerAccounts });
    expect(argsWith(true)).toContain(argument);
    expect(argsWith(false)).not.toContain(argument);
  });
});

describe.each([
  ['kube-apiserver', apiServerArguments(layout, { port: 20_001, auditLog: false })],
  ['kube-controller-manager', controllerManagerArguments(layout, { port: 20_001, controllerAccounts: false })],
  ['kube-scheduler', schedulerArguments(layout, { port: 20_001 })],
])('%s', (_name, args) => {
  it('listens on its port of 127.0.0.1 only, with a certificate of ours', () => {
    expect(args).toContain('--bind-address=127.0.0.1');
    expect(args).toContain('--secure-port=20001');
    expect(args).toContain('--tls-cert-file=/tmp/cluster/serving.crt');
  });

  it('writes nowhere but below the directory', () => {
    const paths = args.map((argument) => argument.split('=')[1] ?? '').filter((value) => value.startsWith('/'));
    expect(paths.filter((path) => !path.startsWith('/tmp/cluster/'))).toEqual([]);
  });
});
