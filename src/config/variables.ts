import { type Rule, rules } from './rules.ts';

export interface Variable<T> {
  readonly rule: Rule<T>;
  /** Default value, as an operator would write it; undefined = none; the meaning says who must set it. */
  readonly default?: string;
  readonly meaning: string;
}

/** Its value is always there. */
type WithDefault<T> = Variable<T> & { readonly default: string };

function variable<T>(rule: Rule<T>, meaning: string): Variable<T>;
function variable<T>(rule: Rule<T>, meaning: string, defaultText: string): WithDefault<T>;
function variable<T>(rule: Rule<T>, meaning: string, defaultText?: string): Variable<T> {
  return defaultText === undefined ? { rule, meaning } : { rule, meaning, default: defaultText };
}

/**
 * Every environment variable of the controller. Names and defaults are the Go program's where it has them.
 * The table in docs/reference.md shows the same: a test compares the two.
 */
export const VARIABLES = {
  KUBECONFIG: variable(
    rules.text,
    'Kubeconfig file (or several, separated by `:`). Not set: the service account of the Pod.',
  ),
  ENV: variable(
    rules.labelValue,
    'The environment this controller serves: topics, Node labels and the env taint carry it.',
    'dev',
  ),
  CONTROLLERS: variable(
    rules.names,
    'Controllers that run in this process, as the table of controllers names them; `all`: every controller.',
    'vk',
  ),
  CLIENT_ID: variable(
    rules.clientId,
    'Name of this replica: `holderIdentity` of its leases and part of its MQTT client ids. Default: POD_NAME, else the host name.',
  ),
  IS_CLUSTER: variable(
    rules.boolean,
    'Several replicas share the bases: each leads some of them, and takes over from one that fails. Each needs a CLIENT_ID of its own.',
    'false',
  ),
  MEMBER_TOKEN: variable(
    rules.keys,
    'Key with which replicas sign messages that they pass on to each other over HTTP: the same for all replicas, and not HTTP_TUNNEL_TOKEN. Two keys while one replaces the other. Required with IS_CLUSTER and the HTTP tunnel. Never sent, never logged.',
  ),
  WORKLOAD_MAX_LEVEL: variable(
    rules.integer(1, 100),
    'Number of workload levels. A replica with a higher level waits longer before it takes a new base.',
    '3',
  ),
  REBALANCE: variable(
    rules.boolean,
    'A replica with more than its share hands bases over to replicas with less. `false`: only new bases and those of replicas that are gone are distributed.',
    'true',
  ),
  VNODE_WORKER_NUM: variable(
    rules.integer(1, 256),
    'Number of bases, and of Nodes, that are processed concurrently.',
    '64',
  ),
  LEASE_RENEW_INTERVAL_SECONDS: variable(
    rules.integer(10, 20),
    'How often the Lease of each Node is renewed; 2 % later on average, as by a kubelet. 20 halves the requests at rest; only where kube-controller-manager takes a Node without renewals for dead after 50 s or later (`--node-monitor-grace-period`; 50 s is the default since Kubernetes 1.32).',
    '10',
  ),
  MAX_VNODES: variable(
    rules.integer(1, 100_000),
    'Maximum number of bases that this replica knows; heartbeats of further bases are refused.',
    '5000',
  ),
  MAX_NEW_NODES_PER_MINUTE: variable(
    rules.integer(1, 100_000),
    'Number of new bases that get a Node in a minute, even in one burst; further bases get it at a later heartbeat.',
    '3000',
  ),
  NEW_BASES_PER_MINUTE: variable(
    rules.integer(0, 100_000),
    'If more new bases come in a minute, each of them has to answer a question before it gets a Node. `0`: every base has to.',
    '60',
  ),
  BASE_NETWORKS: variable(
    rules.networks,
    'Networks of bases, over both tunnels: no other address is stored in Nodes and Pods, and over HTTP none is called. Loopback, link-local, metadata services and the like must be listed explicitly, such as `127.0.0.0/8`. Not set: any address but these.',
  ),
  ENABLE_MQTT_TUNNEL: variable(rules.boolean, 'Find bases over MQTT.', 'false'),
  MQTT_BROKER: variable(rules.host, 'Host of the broker. Required with the MQTT tunnel.'),
  MQTT_PORT: variable(rules.integer(1, 65535), 'Port of the broker.', '1883'),
  MQTT_USERNAME: variable(rules.text, 'User name for the broker.'),
  MQTT_PASSWORD: variable(rules.text, 'Password for the broker. Never logged.'),
  MQTT_CLIENT_PREFIX: variable(
    rules.clientId,
    'Start of the MQTT client id: `{prefix}@@@{CLIENT_ID}@@@{random}`.',
    'koupleless',
  ),
  MQTT_CA_PATH: variable(
    rules.text,
    'PEM file of the CA that signed the broker’s certificate. Set: the link uses TLS.',
  ),
  MQTT_CLIENT_CRT_PATH: variable(
    rules.text,
    'PEM file of the client certificate; only together with MQTT_CLIENT_KEY_PATH.',
  ),
  MQTT_CLIENT_KEY_PATH: variable(rules.text, 'PEM file of the key of that certificate.'),
  ENABLE_HTTP_TUNNEL: variable(rules.boolean, 'Find bases over HTTP.', 'false'),
  HTTP_TUNNEL_LISTEN_PORT: variable(
    rules.port,
    'Port that bases send their heartbeats to; 0 = any free one (not with IS_CLUSTER).',
    '7777',
  ),
  HTTP_TUNNEL_TOKEN: variable(
    rules.keys,
    'Token that bases must send over HTTP as `Authorization: Bearer {token}`. Two tokens while one replaces the other: a base sends either. Not set: bases are not authenticated. Never logged.',
  ),
  HTTP_TUNNEL_BASE_NETWORKS: variable(
    rules.networks,
    'Networks of bases over HTTP, where they are others than those over MQTT. Not set: BASE_NETWORKS.',
  ),
  HTTP_TUNNEL_TRUSTED_PROXIES: variable(
    rules.networks,
    'Proxies between bases and port 7777: from these the sender of a heartbeat is the rightmost address in `X-Forwarded-For` that is none of them. Not set: none.',
  ),
  INSTALL_DEADLINE_SECONDS: variable(
    rules.integer(1, 86_400),
    'Time after which an unanswered install counts as failed (`InstallTimeout`) and is tried again.',
    '300',
  ),
  UNINSTALL_DEADLINE_SECONDS: variable(
    rules.integer(1, 86_400),
    'The same for an uninstall (event `FailedKillPod`, or reason `KillContainerError` before a new install) and for a switch (`SwitchError`).',
    '60',
  ),
  PRE_STOP_SLEEP_SECONDS: variable(
    rules.integer(0, 600),
    'How long a module serves on after its Pod was deleted, if the container has no `lifecycle.preStop.sleep`: load balancers stop sending requests meanwhile. It ends with the grace period of the Pod. 0: the module is uninstalled at once.',
    '2',
  ),
  UNKNOWN_MODULE_POLICY: variable(
    rules.oneOf('remove', 'keep'),
    'Modules on a base that no Pod asks for: `remove` them once that is certain, or `keep` and only report them. Modules that a base had when this ENV first met it are kept either way.',
    'remove',
  ),
  NAME_BASE_PODS: variable(
    rules.boolean,
    '`true`: a Node names the Pod that its base runs in, in the annotation `platform.koupleless.io/base-pod`. One LIST by address for each new base; once an hour where bases run in no Pod.',
    'false',
  ),
  SHARED_NAMESPACES: variable(
    rules.sharedNamespaces,
    'Namespaces whose Pods share module names on a base: those of a group count as one owner, `*` makes all one. The same for all replicas. Not set: each namespace is an owner of its own.',
  ),
  WEBHOOK_PORT: variable(rules.port, 'Port of the webhook server, with `admission`; 0 = any free one.', '9443'),
  WEBHOOK_HOSTS: variable(
    rules.hosts,
    'Names or addresses under which the API server reaches the webhook server: its certificate has them. Not set: those of the Service `module-platform-webhook` in POD_NAMESPACE.',
  ),
  WEBHOOK_CERT_PATH: variable(
    rules.text,
    'PEM file with the certificate of the webhook server, such as cert-manager makes it; only together with WEBHOOK_KEY_PATH. Not set: the controller makes certificates itself, and puts their CA into the webhook configurations.',
  ),
  WEBHOOK_KEY_PATH: variable(rules.text, 'PEM file of the key of that certificate.'),
  EXPORT_CLUSTER: variable(
    rules.labelValue,
    'Name of this cluster in ExportServices and in the feed, with `export`.',
    'kubernetes',
  ),
  EXPORT_DROP_LOST: variable(
    rules.boolean,
    '`true`: modules of a silent base are not backends of load balancers. `false`: they stay backends until the Node is deleted.',
    'false',
  ),
  EXPORT_PORT: variable(
    rules.port,
    'Port of the feed for load balancers and of the catalog’s configuration, with `export` or `catalog` and EXPORT_CERT_PATH; 0 = any free one.',
    '9444',
  ),
  EXPORT_CERT_PATH: variable(
    rules.text,
    'PEM file with the certificate of that port; only together with EXPORT_KEY_PATH. Read again every minute. Not set: nothing is served there.',
  ),
  EXPORT_KEY_PATH: variable(rules.text, 'PEM file of the key of that certificate.'),
  EXPORT_TOKENS_PATH: variable(
    rules.text,
    'Directory with the tokens of load balancers, such as a mounted Secret: a file for each group, one token of at least 32 characters in each line. Read again every minute.',
  ),
  CATALOG_TOKENS_PATH: variable(
    rules.text,
    'Directory with the tokens of applications, such as a mounted Secret: a file `{namespace}.{app}` for each, one token of at least 32 characters in each line. Read again every minute.',
  ),
  HEALTH_PROBE_PORT: variable(rules.port, 'Port of `/healthz` and `/readyz`; 0 = any free one.', '8081'),
  METRICS_PORT: variable(rules.port, 'Port of `/metrics`; 0 = any free one.', '9090'),
  LOG_LEVEL: variable(rules.oneOf('trace', 'debug', 'info', 'warn', 'error'), 'Lowest level that is logged.', 'info'),
  POD_NAME: variable(rules.text, 'Name of the controller’s Pod (downward API).'),
  POD_NAMESPACE: variable(rules.dnsLabel, 'Its namespace (downward API).', 'default'),
  POD_IP: variable(
    rules.text,
    'Its address (downward API), where the other replicas reach it. Required, as an IP address, with IS_CLUSTER and the HTTP tunnel.',
  ),
} as const;

export type VariableName = keyof typeof VARIABLES;

/** The Go program's variables that do nothing here (yet); set ones are named in a warning at start. */
export const WITHOUT_EFFECT = [
  'NAMESPACE',
  'REPORT_HOOKS',
  'ENABLE_MODULE_REPLICAS_SYNC_WITH_BASE',
  'KUBELET_PROXY_ENABLED',
  'KUBELET_PROXY_PORT',
] as const;
