import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiClient } from './api-client.ts';
import { apiServerArguments, controllerManagerArguments, etcdArguments, schedulerArguments } from './arguments.ts';
import { type AuditLogOption, renderAuditPolicy } from './audit-log.ts';
import { type CertificateAuthority, createCertificateAuthority, type KeyPair } from './certificates.ts';
import { Component } from './component.ts';
import { isEtcdReady, isHealthy, isReady, waitForNamespaceDefaults } from './health.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { type Layout, layoutOf } from './layout.ts';
import { withFreshPort } from './ports.ts';
import type { Supervisor } from './supervisor-client.ts';
import type { ComponentName } from './versions.ts';

export interface BootstrapOptions {
  supervisor: Supervisor;
  /** The directory of the binaries. */
  binaries: string;
  auditLog: AuditLogOption;
  unsafeNoFsync: boolean;
  controllerAccounts: boolean;
  extraArgs: Partial<Record<ComponentName, string[]>>;
}

export interface RunningParts {
  server: string;
  layout: Layout;
  authority: CertificateAuthority;
  admin: ApiClient;
  /** Used by the health checks; closed with the control plane. */
  probes: ApiClient[];
  /** Reserved also while a component is down; released with the control plane. */
  ports: number[];
  components: Record<ComponentName, Component>;
}

/** The common name of its certificate authority. */
export const AUTHORITY_NAME = 'control-plane-ca';

/** What is the same for every component of one control plane. */
interface Context extends BootstrapOptions {
  layout: Layout;
  authority: CertificateAuthority;
  adminCredential: KeyPair;
  probes: ApiClient[];
  ports: number[];
}

/** Resolves when all four components are healthy and a Pod can be created. */
export async function bootstrap(options: BootstrapOptions): Promise<RunningParts> {
  const authority = createCertificateAuthority(AUTHORITY_NAME);
  const adminCredential = authority.issue({ commonName: 'admin', organizations: ['system:masters'] });
  const layout = layoutOf(options.supervisor.directory);
  const context: Context = { ...options, layout, authority, adminCredential, probes: [], ports: [] };
  await writeIdentities(context);

  const [etcd, apiServer] = await Promise.all([startEtcd(context), startApiServer(context)]);
  await writeComponentKubeconfigs(context, apiServer.server);
  const [controllerManager, scheduler] = await Promise.all([
    startClient(context, 'kube-controller-manager', (layout, { port }) =>
      controllerManagerArguments(layout, { port, controllerAccounts: context.controllerAccounts }),
    ),
    startClient(context, 'kube-scheduler', schedulerArguments),
    waitForNamespaceDefaults(apiServer.admin),
  ]);
  return {
    server: apiServer.server,
    layout,
    authority,
    admin: apiServer.admin,
    probes: context.probes,
    ports: context.ports,
    components: {
      etcd,
      'kube-apiserver': apiServer.component,
      'kube-controller-manager': controllerManager,
      'kube-scheduler': scheduler,
    },
  };
}

async function writeIdentities({ layout, authority, auditLog }: Context): Promise<void> {
  const serving = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1', 'localhost'] });
  const kubeletClient = authority.issue({
    commonName: 'kube-apiserver-kubelet-client',
    organizations: ['system:masters'],
  });
  const serviceAccounts = authority.issue({ commonName: 'service-accounts' });
  await Promise.all([
    writePrivate(layout.caCertificate, authority.certificate),
    writePrivate(layout.caKey, authority.privateKey),
    writePrivate(layout.servingCertificate, serving.certificate),
    writePrivate(layout.servingKey, serving.privateKey),
    writePrivate(layout.kubeletClientCertificate, kubeletClient.certificate),
    writePrivate(layout.kubeletClientKey, kubeletClient.privateKey),
    writePrivate(layout.serviceAccountKey, serviceAccounts.privateKey),
    ...(auditLog
      ? [writePrivate(layout.auditPolicy, renderAuditPolicy(auditLog === true ? undefined : auditLog))]
      : []),
  ]);
}

async function writeComponentKubeconfigs(
  { layout, authority, controllerAccounts }: Context,
  server: string,
): Promise<void> {
  const write = (path: string, userName: string, organizations: string[] = []) => {
    const credential = authority.issue({ commonName: userName, organizations });
    const certificateAuthority = authority.certificate;
    return writePrivate(path, renderKubeconfig({ server, certificateAuthority, userName, credential }));
  };
  await Promise.all([
    write(
      layout.controllerManagerKubeconfig,
      'system:kube-controller-manager',
      // All rights, unless each of its controllers has an account of its own.
      controllerAccounts ? [] : ['system:masters'],
    ),
    write(layout.schedulerKubeconfig, 'system:kube-scheduler'),
  ]);
}

async function startEtcd(context: Context): Promise<Component> {
  const component = createComponent(context, 'etcd', {
    args: etcdArguments(context.layout, context),
    isHealthy: () => isEtcdReady(context.layout.etcdSocket),
  });
  await component.start();
  return component;
}

function startApiServer(context: Context): Promise<{ component: Component; server: string; admin: ApiClient }> {
  return withFreshPort(async (port) => {
    const server = `https://127.0.0.1:${port}`;
    const admin = createProbe(context, server);
    const component = createComponent(context, 'kube-apiserver', {
      args: apiServerArguments(context.layout, { port, auditLog: context.auditLog !== false }),
      isHealthy: () => isReady(admin),
    });
    await component.start();
    context.ports.push(port);
    return { component, server, admin };
  });
}

function startClient(
  context: Context,
  name: 'kube-controller-manager' | 'kube-scheduler',
  argumentsOf: typeof schedulerArguments,
): Promise<Component> {
  return withFreshPort(async (port) => {
    const probe = createProbe(context, `https://127.0.0.1:${port}`);
    const component = createComponent(context, name, {
      args: argumentsOf(context.layout, { port }),
      isHealthy: () => isHealthy(probe),
    });
    await component.start();
    context.ports.push(port);
    return component;
  });
}

function createComponent(
  { supervisor, binaries, layout, extraArgs }: Context,
  name: ComponentName,
  { args, isHealthy }: { args: string[]; isHealthy: () => Promise<boolean> },
): Component {
  return new Component({
    name,
    command: join(binaries, name),
    // Last, so that a repeated one wins.
    args: [...args, ...(extraArgs[name] ?? [])],
    logPath: layout.logOf(name),
    isHealthy,
    supervisor,
  });
}

function createProbe({ authority, adminCredential, probes }: Context, server: string): ApiClient {
  const probe = new ApiClient({ server, certificateAuthority: authority.certificate, credential: adminCredential });
  probes.push(probe);
  return probe;
}

const writePrivate = (path: string, text: string): Promise<void> => writeFile(path, text, { mode: 0o600 });
