import { isIP, isIPv6 } from 'node:net';
import { ControllerError } from '../errors.ts';
import type { Network, SharedNamespaces } from './rules.ts';
import { VARIABLES, type Variable, type VariableName, WITHOUT_EFFECT } from './variables.ts';

export interface MqttConfig {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly clientPrefix: string;
  readonly caPath: string | undefined;
  readonly clientCertPath: string | undefined;
  readonly clientKeyPath: string | undefined;
  /** undefined = anywhere but loopback, link-local and the like. */
  readonly baseNetworks: readonly Network[] | undefined;
}

export interface HttpConfig {
  readonly port: number;
  /** One or two that bases may send; undefined = bases are not authenticated. */
  readonly tokens: readonly string[] | undefined;
  /** undefined = anywhere but loopback, link-local and the like. */
  readonly baseNetworks: readonly Network[] | undefined;
  /** undefined = none. */
  readonly trustedProxies: readonly Network[] | undefined;
}

/** How a replica shares the bases with others. */
export interface ClusterConfig {
  /** `host:port`, where other members pass on what they hear; undefined = the HTTP tunnel is off. */
  readonly memberAddress: string | undefined;
  /** One or two keys with which members prove their messages; undefined = the HTTP tunnel is off. */
  readonly memberKeys: readonly string[] | undefined;
  /** Into how many levels the share of the bases is divided. */
  readonly maxLevel: number;
  readonly rebalance: boolean;
}

/** How the API server reaches and trusts the webhook server. */
export interface WebhookConfig {
  readonly port: number;
  /** At least one. */
  readonly hosts: readonly string[];
  /** Somebody else makes the certificate; undefined = this program does. */
  readonly files: { readonly certPath: string; readonly keyPath: string } | undefined;
}

export interface ExportConfig {
  /** Names this cluster to load balancers. */
  readonly cluster: string;
  /** Modules of a base that is silent get no requests. */
  readonly dropsLost: boolean;
}

/** The port with TLS for clients outside of the cluster. */
export interface FeedConfig {
  readonly port: number;
  readonly certPath: string;
  readonly keyPath: string;
  /** Tokens of load balancers. */
  readonly groupTokensPath: string | undefined;
  /** Tokens of applications. */
  readonly appTokensPath: string | undefined;
}

export interface NewBasesConfig {
  readonly maxVNodes: number;
  readonly newNodesPerMinute: number;
  readonly newBasesPerMinute: number;
}

/** Everything an operator can set, checked and frozen. */
export interface Config {
  readonly kubeconfig: string | undefined;
  readonly env: string;
  /** The controllers of this process, by name. */
  readonly controllers: readonly string[];
  readonly clientId: string;
  readonly isCluster: boolean;
  /** undefined = this replica is the only one. */
  readonly cluster: ClusterConfig | undefined;
  readonly workers: number;
  /** From one renewal of the Lease of a Node to the next. */
  readonly leaseRenewIntervalMs: number;
  /** How many bases may be found. */
  readonly newBases: NewBasesConfig;
  /** undefined = the tunnel is off. */
  readonly mqtt: MqttConfig | undefined;
  /** undefined = the tunnel is off. */
  readonly http: HttpConfig | undefined;
  /** undefined = there is no webhook server. */
  readonly webhook: WebhookConfig | undefined;
  /** undefined = no Service is exported. */
  readonly export: ExportConfig | undefined;
  /** undefined = it is not served. */
  readonly feed: FeedConfig | undefined;
  readonly installDeadlineMs: number;
  readonly uninstallDeadlineMs: number;
  readonly preStopSleepSeconds: number;
  readonly unknownModulePolicy: 'remove' | 'keep';
  readonly namesBasePods: boolean;
  /** Namespaces that own module names together. */
  readonly sharedNamespaces: SharedNamespaces;
  readonly healthProbePort: number;
  readonly metricsPort: number;
  readonly logLevel: string;
  readonly pod: { readonly name: string | undefined; readonly namespace: string; readonly ip: string | undefined };
  /** Set variables of the Go program that do nothing here. */
  readonly withoutEffect: readonly string[];
}

/** All faults of a configuration at once; each names variable, value and rule. */
export class ConfigError extends ControllerError {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super('Config.Invalid', `the configuration has ${faults.length} fault(s):\n  ${faults.join('\n  ')}`);
    this.faults = faults;
  }
}

type ValueOf<V> = V extends Variable<infer T> ? (V extends { readonly default: string } ? T : T | undefined) : never;

/** One that is against its rule is missing: the configuration is refused then. */
type Values = { readonly [N in VariableName]: ValueOf<(typeof VARIABLES)[N]> };

const SECRET: ReadonlySet<string> = new Set(['MQTT_PASSWORD', 'HTTP_TUNNEL_TOKEN', 'MEMBER_TOKEN']);

/** The controller of bases and modules: without it no tunnel and no membership is needed. */
const VIRTUAL_KUBELET = 'vk';
const ADMISSION = 'admission';
const EXPORT = 'export';
const CATALOG = 'catalog';
/** Name of the webhook's Service in `deploy/platform`. */
const WEBHOOK_SERVICE = 'module-platform-webhook';

/**
 * Reads the environment once. An empty variable counts as not set. `known`: the controllers that there are.
 * Throws ConfigError.
 */
export function loadConfig(
  env: Readonly<Record<string, string | undefined>>,
  hostName: string,
  known: readonly string[] = [VIRTUAL_KUBELET],
): Config {
  const faults: string[] = [];
  const values = readAll(env, faults);
  const controllers = controllersOf(values, known, faults);
  const isKubelet = controllers.includes(VIRTUAL_KUBELET);
  const mqtt = isKubelet ? mqttOf(values, faults) : undefined;
  const http = isKubelet ? httpOf(values) : undefined;
  const cluster = isKubelet ? clusterOf(values, faults) : undefined;
  const webhook = controllers.includes(ADMISSION) ? webhookOf(values, faults) : undefined;
  const exported = controllers.includes(EXPORT) ? exportOf(values) : undefined;
  const feed = [EXPORT, CATALOG].some((name) => controllers.includes(name)) ? feedOf(values, faults) : undefined;
  if (isKubelet && values.ENABLE_MQTT_TUNNEL === false && values.ENABLE_HTTP_TUNNEL === false)
    faults.push('ENABLE_MQTT_TUNNEL and ENABLE_HTTP_TUNNEL are false: no tunnel is enabled, so no base can be found');
  const clientId = values.CLIENT_ID ?? values.POD_NAME ?? hostName;
  if (VARIABLES.CLIENT_ID.rule.parse(clientId) === undefined) {
    faults.push(
      `CLIENT_ID is not set, and ${JSON.stringify(clientId)} cannot stand in: must be ${VARIABLES.CLIENT_ID.rule.text}`,
    );
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return Object.freeze({
    kubeconfig: values.KUBECONFIG,
    env: values.ENV,
    controllers,
    clientId,
    isCluster: cluster !== undefined,
    cluster,
    workers: values.VNODE_WORKER_NUM,
    leaseRenewIntervalMs: values.LEASE_RENEW_INTERVAL_SECONDS * 1000,
    newBases: newBasesOf(values),
    mqtt,
    http,
    webhook,
    export: exported,
    feed,
    installDeadlineMs: values.INSTALL_DEADLINE_SECONDS * 1000,
    uninstallDeadlineMs: values.UNINSTALL_DEADLINE_SECONDS * 1000,
    preStopSleepSeconds: values.PRE_STOP_SLEEP_SECONDS,
    unknownModulePolicy: values.UNKNOWN_MODULE_POLICY,
    namesBasePods: values.NAME_BASE_PODS,
    sharedNamespaces: values.SHARED_NAMESPACES ?? [],
    healthProbePort: values.HEALTH_PROBE_PORT,
    metricsPort: values.METRICS_PORT,
    logLevel: values.LOG_LEVEL,
    pod: Object.freeze({ name: values.POD_NAME, namespace: values.POD_NAMESPACE, ip: values.POD_IP }),
    withoutEffect: WITHOUT_EFFECT.filter((name) => (env[name] ?? '') !== ''),
  });
}

function readAll(env: Readonly<Record<string, string | undefined>>, faults: string[]): Values {
  const values: Record<string, unknown> = {};
  for (const [name, { rule, default: defaultText }] of Object.entries(VARIABLES) as [string, Variable<unknown>][]) {
    const set = env[name] ?? '';
    const text = set === '' ? defaultText : set;
    if (text === undefined) continue;
    const value = rule.parse(text);
    if (value === undefined)
      faults.push(`${name}=${SECRET.has(name) ? '***' : JSON.stringify(text)}: must be ${rule.text}`);
    else values[name] = value;
  }
  return values as Values;
}

/** Not set, unlike set to a value that is reported already. */
function isMissing(name: VariableName, values: Values, faults: readonly string[]): boolean {
  return values[name] === undefined && !faults.some((fault) => fault.startsWith(`${name}=`));
}

/** A certificate and its key. */
function checkBothOrNone(
  [first, second]: readonly [VariableName, VariableName],
  values: Values,
  faults: string[],
): void {
  if ((values[first] === undefined) !== (values[second] === undefined))
    faults.push(`${first} and ${second}: set both or none`);
}

/** In the order in which they are known, so that a later one finds what an earlier one has made. */
function controllersOf({ CONTROLLERS: wanted }: Values, known: readonly string[], faults: string[]): readonly string[] {
  if (wanted === undefined) return [];
  if (wanted.length === 1 && wanted[0] === 'all') return known;
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    faults.push(
      `CONTROLLERS=${JSON.stringify(wanted.join())}: no such controller: ${unknown.join()}; there are: ${known.join()}`,
    );
  return known.filter((name) => wanted.includes(name));
}

function newBasesOf(values: Values): NewBasesConfig {
  return Object.freeze({
    maxVNodes: values.MAX_VNODES,
    newNodesPerMinute: values.MAX_NEW_NODES_PER_MINUTE,
    newBasesPerMinute: values.NEW_BASES_PER_MINUTE,
  });
}

function mqttOf(values: Values, faults: string[]): MqttConfig | undefined {
  if (values.ENABLE_MQTT_TUNNEL !== true) return undefined;
  if (isMissing('MQTT_BROKER', values, faults))
    faults.push('MQTT_BROKER is not set: it is required with ENABLE_MQTT_TUNNEL=true');
  checkBothOrNone(['MQTT_CLIENT_CRT_PATH', 'MQTT_CLIENT_KEY_PATH'], values, faults);
  return Object.freeze({
    host: values.MQTT_BROKER ?? '',
    port: values.MQTT_PORT,
    username: values.MQTT_USERNAME,
    password: values.MQTT_PASSWORD,
    clientPrefix: values.MQTT_CLIENT_PREFIX,
    caPath: values.MQTT_CA_PATH,
    clientCertPath: values.MQTT_CLIENT_CRT_PATH,
    clientKeyPath: values.MQTT_CLIENT_KEY_PATH,
    baseNetworks: values.BASE_NETWORKS,
  });
}

function httpOf(values: Values): HttpConfig | undefined {
  if (values.ENABLE_HTTP_TUNNEL !== true) return undefined;
  return Object.freeze({
    port: values.HTTP_TUNNEL_LISTEN_PORT,
    tokens: values.HTTP_TUNNEL_TOKEN,
    baseNetworks: values.HTTP_TUNNEL_BASE_NETWORKS ?? values.BASE_NETWORKS,
    trustedProxies: values.HTTP_TUNNEL_TRUSTED_PROXIES,
  });
}

function webhookOf(values: Values, faults: string[]): WebhookConfig {
  const { WEBHOOK_CERT_PATH: certPath, WEBHOOK_KEY_PATH: keyPath, POD_NAMESPACE: namespace } = values;
  checkBothOrNone(['WEBHOOK_CERT_PATH', 'WEBHOOK_KEY_PATH'], values, faults);
  const service = `${WEBHOOK_SERVICE}.${namespace}.svc`;
  return Object.freeze({
    port: values.WEBHOOK_PORT,
    hosts: values.WEBHOOK_HOSTS ?? [service, `${service}.cluster.local`],
    files: certPath && keyPath ? { certPath, keyPath } : undefined,
  });
}

function exportOf(values: Values): ExportConfig {
  return Object.freeze({ cluster: values.EXPORT_CLUSTER, dropsLost: values.EXPORT_DROP_LOST });
}

function feedOf(values: Values, faults: string[]): FeedConfig | undefined {
  const { EXPORT_CERT_PATH: certPath, EXPORT_KEY_PATH: keyPath } = values;
  checkBothOrNone(['EXPORT_CERT_PATH', 'EXPORT_KEY_PATH'], values, faults);
  for (const name of ['EXPORT_TOKENS_PATH', 'CATALOG_TOKENS_PATH'] as const) {
    if (values[name] !== undefined && certPath === undefined)
      faults.push(`${name}: the feed is served with EXPORT_CERT_PATH and EXPORT_KEY_PATH only`);
  }
  if (certPath === undefined || keyPath === undefined) return undefined;
  const { EXPORT_PORT: port, EXPORT_TOKENS_PATH: groupTokensPath, CATALOG_TOKENS_PATH: appTokensPath } = values;
  return Object.freeze({ port, certPath, keyPath, groupTokensPath, appTokensPath });
}

const WITH_MEMBERS = 'with IS_CLUSTER=true and ENABLE_HTTP_TUNNEL=true';

function clusterOf(values: Values, faults: string[]): ClusterConfig | undefined {
  if (values.IS_CLUSTER !== true) return undefined;
  const isHeard = values.ENABLE_HTTP_TUNNEL === true;
  if (isHeard) checkMember(values, faults);
  return Object.freeze({
    memberAddress: isHeard ? memberAddressOf(values) : undefined,
    memberKeys: isHeard ? values.MEMBER_TOKEN : undefined,
    maxLevel: values.WORKLOAD_MAX_LEVEL,
    rebalance: values.REBALANCE,
  });
}

/** Over HTTP a base speaks to one member, which passes it on: members have to reach and to trust each other. */
function checkMember(values: Values, faults: string[]): void {
  const { MEMBER_TOKEN: keys, HTTP_TUNNEL_TOKEN: tokens = [], POD_IP: ip } = values;
  if (isMissing('MEMBER_TOKEN', values, faults)) faults.push(`MEMBER_TOKEN is not set: it is required ${WITH_MEMBERS}`);
  if (tokens.some((token) => keys?.includes(token)))
    faults.push('MEMBER_TOKEN and HTTP_TUNNEL_TOKEN: must differ, or a base could speak as a replica');
  if (ip === undefined) faults.push(`POD_IP is not set: it is required ${WITH_MEMBERS}`);
  // A zone (`fe80::1%eth0`) names a network interface of this machine.
  else if (isIP(ip) === 0 || ip.includes('%'))
    faults.push(`POD_IP=${JSON.stringify(ip)}: must be an IP address ${WITH_MEMBERS}`);
  if (values.HTTP_TUNNEL_LISTEN_PORT === 0)
    faults.push(`HTTP_TUNNEL_LISTEN_PORT="0": must be from 1 to 65535 ${WITH_MEMBERS}`);
}

function memberAddressOf({ POD_IP: ip = '', HTTP_TUNNEL_LISTEN_PORT: port }: Values): string {
  return `${isIPv6(ip) ? `[${ip}]` : ip}:${port}`;
}
