import type { Exported } from '../../src/platform/export/export-service.ts';

/** A port of a Service, as the feed has it. */
type ExportedPort = Exported['ports'][number];

export interface HaproxyOptions {
  /** Where it listens. */
  readonly bind: string;
  /** Added to each port of a Service, so that it may run beside others. */
  readonly portOffset: number;
  /** Path of a socket that nobody uses: HAProxy does not start without a listener. */
  readonly idleSocket: string;
  /** Ports of Services that get no frontend. Default: none. */
  readonly without?: ReadonlySet<number>;
}

interface Route {
  readonly service: Exported;
  readonly port: ExportedPort;
  readonly backend: string;
}

/**
 * A configuration of HAProxy 2.6 or newer for all Services of a group. Equal Services give equal text. HTTPS and UDP
 * are left out: they need a certificate, and another balancer.
 */
export function haproxyConfigOf(services: readonly Exported[], options: HaproxyOptions): string {
  const routes = services
    .flatMap((service) => service.ports.map((port) => ({ service, port, backend: backendNameOf(service, port) })))
    .filter(({ port }) => isServed(port))
    .sort((a, b) => (a.backend < b.backend ? -1 : 1));
  const ports = [...servicePortsOf(services)].filter((port) => !options.without?.has(port)).sort((a, b) => a - b);
  const sections = [
    HEAD,
    `frontend idle\n  bind unix@${options.idleSocket}\n  mode tcp`,
    ...ports.map((port) =>
      frontendOf(
        port,
        routes.filter((route) => route.port.servicePort === port),
        options,
      ),
    ),
    ...routes.map(backendOf),
  ];
  return `${sections.join('\n\n')}\n`;
}

/** The ports of all Services that have a frontend. */
export function servicePortsOf(services: readonly Exported[]): ReadonlySet<number> {
  return new Set(services.flatMap(({ ports }) => ports.filter(isServed).map(({ servicePort }) => servicePort)));
}

function isServed({ protocol }: ExportedPort): boolean {
  return protocol === 'http' || protocol === 'tcp';
}

/**
 * Connections of a worker that is replaced end by themselves; `hard-stop-after` is for those that never do. Such a worker
 * answers one more call on a kept connection, by its former configuration: `http-keep-alive` is shorter than the 2 s for
 * which a module serves after it has left the feed.
 */
const HEAD = `global
  maxconn 4000
  hard-stop-after 60s

defaults
  timeout connect 2s
  timeout client 60s
  timeout http-keep-alive 1s
  timeout server 60s
  # A base that has just gone: the call goes to another one.
  option redispatch 1
  retries 2`;

function frontendOf(servicePort: number, routes: readonly Route[], { bind, portOffset }: HaproxyOptions): string {
  const lines = [`frontend port-${servicePort}`, `  bind ${bind}:${servicePort + portOffset}`];
  const [first] = routes;
  lines.push(`  maxconn ${Math.max(...routes.map(({ service }) => service.maxconn))}`);
  if (first?.port.protocol === 'tcp') return [...lines, '  mode tcp', `  default_backend ${first.backend}`].join('\n');
  // A worker that is replaced closes a connection with its next answer, never between two calls.
  lines.push('  mode http', '  option idle-close-on-response');
  for (const { port, backend } of [...routes].sort(byPrecision)) {
    const host = hostTest(port.BCSVHost);
    const path = port.path.replace(/\/$/, '');
    const tests = path === '' ? [host] : [`${host} { path ${path} }`, `${host} { path_beg ${path}/ }`];
    lines.push(`  use_backend ${backend} if ${tests.join(' or ')}`);
  }
  return lines.join('\n');
}

/** Names before wildcards, then long paths before short ones: `/` is the beginning of all. */
function byPrecision(a: Route, b: Route): number {
  const isWildcard = ({ port }: Route): number => (port.BCSVHost.startsWith('*.') ? 1 : 0);
  const order = isWildcard(a) - isWildcard(b) || b.port.path.length - a.port.path.length;
  return order || (a.backend < b.backend ? -1 : 1);
}

/** The name may come with a port. */
function hostTest(host: string): string {
  const name = 'hdr(host),field(1,:)';
  return host.startsWith('*.') ? `{ ${name} -i -m end ${host.slice(1)} }` : `{ ${name} -i ${host} }`;
}

function backendOf({ service, port, backend }: Route): string {
  const lines = [`backend ${backend}`, `  mode ${port.protocol}`, `  balance ${service.balance}`];
  for (const [index, { targetIP, targetPort, weight }] of port.backends.entries()) {
    const host = targetIP.includes(':') ? `[${targetIP}]` : targetIP;
    lines.push(`  server s${index} ${host}:${targetPort} weight ${weight}`);
  }
  return lines.join('\n');
}

function backendNameOf({ namespace, serviceName }: Exported, { name }: ExportedPort): string {
  return `${namespace}.${serviceName}.${name}`;
}
