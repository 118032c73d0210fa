import type { KubeObject, ObjectMeta, ServiceObject, ServicePort } from '../../kube/objects.ts';
import { EXPORT_ANNOTATION, EXPORT_LABEL, MODULE_LABEL } from '../../labels.ts';
import type { AdmissionRequest, Verdict } from '../../reconcile/webhooks.ts';
import { shortened } from '../../shortened.ts';

export const BALANCES = ['roundrobin', 'source', 'leastconn'] as const;
export type Balance = (typeof BALANCES)[number];

export const PROTOCOLS = ['http', 'https', 'tcp', 'udp'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

const DEFAULT_MAX_CONNECTIONS = 50_000;
const MAX_CONNECTIONS = 10_000_000;
export const MAX_GROUPS = 16;
export const MAX_PORTS = 64;
/** Shares are made of quotients: more would not be exact. */
const MAX_WEIGHT = 1_000_000;
const MAX_WEIGHTS = 64;
const MAX_PATH_LENGTH = 1024;
const MAX_HOST_LENGTH = 253;
/** Whoever writes 10,000 wrong names needs no list of them, and this process no memory for it. */
const MAX_FAULTS = 20;

/** What balancers copy into their configuration: no character of these means anything there. */
const GROUP = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;
const PATH = /^\/[A-Za-z0-9._~%+,=:@/-]*$/;
const PORT_NAME = /^[A-Za-z0-9-]{1,63}$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** One port of an exported Service. */
export interface ExportedPort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly servicePort: number;
  /** A number, or the name of a port of the Pods. */
  readonly target: number | string;
  /** Protocol of the port of the Service: TCP, UDP or SCTP. */
  readonly transport: string;
  /** '' where balancers do not go by host names. */
  readonly host: string;
  /** '' as well. */
  readonly path: string;
}

/** What a Service says about its export. */
export interface ExportSettings {
  readonly groups: readonly string[];
  readonly balance: Balance;
  readonly maxConnections: number;
  readonly isSsl: boolean;
  readonly weightLabel: string;
  /** Shares by the value of that label. */
  readonly weights: Readonly<Record<string, number>>;
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly ExportedPort[];
  /** What is wrong, each with its field. What is wrong is left out, or has its default, and the rest counts. */
  readonly faults: readonly string[];
  /** What its author may not expect, and is no fault. */
  readonly notes: readonly string[];
}

/** What a Service asks for; undefined when it is not exported. Never throws. */
export function exportSettingsOf(service: KubeObject): ExportSettings | undefined {
  const { metadata, spec = {} } = service as ServiceObject;
  if (!isExported(metadata)) return undefined;
  const { labels = {}, annotations = {} } = metadata;
  const faults: string[] = [];
  const notes: string[] = [];
  const { selector = {} } = spec;
  const isExternal = spec.type === 'ExternalName';
  if (isExternal) faults.push('spec.type: a Service of type ExternalName has no backends');
  // Kubernetes has no Endpoints for it either; here it would be all Pods.
  if (Object.keys(selector).length === 0) faults.push('spec.selector: an exported Service must select Pods');
  return {
    groups: groupsOf(metadata, faults),
    balance: balanceOf(labels[EXPORT_LABEL.balance], faults),
    maxConnections: maxConnectionsOf(annotations[EXPORT_ANNOTATION.maxConnections], faults),
    isSsl: sslOf(annotations[EXPORT_ANNOTATION.ssl], faults),
    weightLabel: weightLabelOf(annotations[EXPORT_ANNOTATION.weightLabel], faults),
    weights: weightsOf(labels, faults),
    selector,
    ports: isExternal ? [] : portsOf(spec.ports ?? [], annotations[EXPORT_ANNOTATION.ports], { faults, notes }),
    faults: firstOf(faults),
    notes: firstOf(notes),
  };
}

function firstOf(faults: readonly string[]): readonly string[] {
  if (faults.length <= MAX_FAULTS) return faults;
  return [...faults.slice(0, MAX_FAULTS), `and ${faults.length - MAX_FAULTS} more`];
}

/** Refuses an exported Service with faults. One that is stored with faults already may be changed in other fields. */
export function reviewService({ object, oldObject }: AdmissionRequest<ServiceObject>): Verdict<ServiceObject> {
  const known = (oldObject && exportSettingsOf(oldObject)?.faults) ?? [];
  const faults = (exportSettingsOf(object)?.faults ?? []).filter((fault) => !known.includes(fault));
  return faults.length === 0 ? { isAllowed: true } : { isAllowed: false, message: faults.join('; ') };
}

function isExported({ labels = {}, annotations = {} }: ObjectMeta): boolean {
  return labels[EXPORT_LABEL.group] !== undefined || annotations[EXPORT_ANNOTATION.groups] !== undefined;
}

function labelField(key: string): string {
  return `metadata.labels[${key}]`;
}

function annotationField(key: string): string {
  return `metadata.annotations[${key}]`;
}

/** Groups that the label and the annotation name together, each once, in order. */
function groupsOf({ labels = {}, annotations = {} }: ObjectMeta, faults: string[]): string[] {
  const named = [
    { field: labelField(EXPORT_LABEL.group), names: [labels[EXPORT_LABEL.group] ?? ''] },
    {
      field: annotationField(EXPORT_ANNOTATION.groups),
      names: (annotations[EXPORT_ANNOTATION.groups] ?? '').split(',').map((name) => name.trim()),
    },
  ];
  const groups = new Set<string>();
  for (const { field, names } of named) {
    for (const name of names.filter((one) => one !== '')) {
      if (GROUP.test(name)) groups.add(name);
      else faults.push(`${field}: ${quoted(name)} is not a group: letters, digits, "-", "_" and ".", at most 63`);
    }
  }
  if (groups.size === 0) faults.push(`${labelField(EXPORT_LABEL.group)}: must name a group, such as "external"`);
  if (groups.size > MAX_GROUPS)
    faults.push(`${annotationField(EXPORT_ANNOTATION.groups)}: more than ${MAX_GROUPS} groups`);
  return [...groups].sort().slice(0, MAX_GROUPS);
}

function balanceOf(text: string | undefined, faults: string[]): Balance {
  const found = BALANCES.find((balance) => balance === text);
  if (text !== undefined && found === undefined)
    faults.push(`${labelField(EXPORT_LABEL.balance)}: ${quoted(text)} is not one of ${BALANCES.join(', ')}`);
  return found ?? 'roundrobin';
}

function maxConnectionsOf(text: string | undefined, faults: string[]): number {
  if (text === undefined) return DEFAULT_MAX_CONNECTIONS;
  const count = /^\d{1,8}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_CONNECTIONS) return count;
  const field = annotationField(EXPORT_ANNOTATION.maxConnections);
  faults.push(`${field}: ${quoted(text)} is not an integer from 1 to ${MAX_CONNECTIONS}`);
  return DEFAULT_MAX_CONNECTIONS;
}

function sslOf(text: string | undefined, faults: string[]): boolean {
  if (text !== undefined && text !== 'true' && text !== 'false')
    faults.push(`${annotationField(EXPORT_ANNOTATION.ssl)}: ${quoted(text)} is neither true nor false`);
  return text === 'true';
}

function weightLabelOf(text: string | undefined, faults: string[]): string {
  if (text === undefined) return MODULE_LABEL.version;
  if (LABEL_KEY.test(text)) return text;
  faults.push(`${annotationField(EXPORT_ANNOTATION.weightLabel)}: ${quoted(text)} is not a label name`);
  return MODULE_LABEL.version;
}

function weightsOf(labels: Readonly<Record<string, string>>, faults: string[]): Record<string, number> {
  const weights: [string, number][] = [];
  for (const [key, text] of Object.entries(labels).filter(([name]) => name.startsWith(EXPORT_LABEL.weightPrefix))) {
    const weight = /^\d{1,7}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
    if (weight <= MAX_WEIGHT) weights.push([key.slice(EXPORT_LABEL.weightPrefix.length), weight]);
    else faults.push(`${labelField(key)}: ${quoted(text)} is not an integer from 0 to ${MAX_WEIGHT}`);
  }
  if (weights.length > MAX_WEIGHTS) faults.push(`metadata.labels: more than ${MAX_WEIGHTS} weights`);
  return Object.fromEntries(weights.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MAX_WEIGHTS));
}

/** Lists to which sentences are added. */
interface Diagnoses {
  readonly faults: string[];
  readonly notes: string[];
}

function portsOf(ports: readonly ServicePort[], text: string | undefined, diagnoses: Diagnoses): ExportedPort[] {
  const { faults } = diagnoses;
  const described = descriptionsOf(text, faults);
  const names = new Set(ports.map(nameOf));
  const known = shortened([...names].join(', '), MAX_QUOTED);
  for (const name of described.keys())
    if (!names.has(name)) faults.push(`${portField(name)}: the Service has no port of this name, only ${known}`);
  if (ports.length > MAX_PORTS) faults.push(`spec.ports: more than ${MAX_PORTS}`);
  return ports
    .slice(0, MAX_PORTS)
    .flatMap((port) => portOf(port, described.get(nameOf(port)) ?? {}, diagnoses) ?? [])
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * A path in the form in which two are compared: that of Gateway API's `PathPrefix`, in which `/x/` is `/x`, with
 * percent-encodings of plain characters resolved.
 */
export function normalPath(path: string): string {
  const resolved = path.replace(/%[0-9A-Fa-f]{2}/g, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase();
  });
  return resolved.length > 1 && resolved.endsWith('/') ? resolved.slice(0, -1) : resolved;
}

/** Segments that servers take out, or that they take for others. */
const ODD_SEGMENT = /\/(\/|\.{1,2}(\/|$))/;
const ODD_ENCODING = /%(?![0-9A-Fa-f]{2})|%2[5EeFf]|%5[Cc]|%[01]|%7[Ff]/;

/** The only port of a Service may have no name. */
function nameOf({ name, port }: ServicePort): string {
  return name || String(port);
}

/** Both names may be whatever stands in the annotation. */
function portField(name: string, field?: string): string {
  const path = field === undefined ? [name] : [name, field];
  return [annotationField(EXPORT_ANNOTATION.ports), ...path.map(plain)].join('.');
}

function plain(name: string): string {
  return PORT_NAME.test(name) ? name : quoted(name);
}

type PortDescription = Readonly<Record<string, unknown>>;
const DESCRIBED = ['domainName', 'path', 'protocol'];

function descriptionsOf(text: string | undefined, faults: string[]): Map<string, PortDescription> {
  if (text === undefined) return new Map();
  const field = annotationField(EXPORT_ANNOTATION.ports);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    faults.push(`${field}: is not JSON`);
    return new Map();
  }
  if (!isRecord(parsed)) {
    faults.push(`${field}: is not an object with the names of ports`);
    return new Map();
  }
  const described = new Map<string, PortDescription>();
  for (const [name, description] of Object.entries(parsed)) {
    if (!isRecord(description)) {
      faults.push(`${portField(name)}: is not an object with ${DESCRIBED.join(', ')}`);
      continue;
    }
    const unknown = Object.keys(description).filter((key) => !DESCRIBED.includes(key));
    for (const key of unknown) faults.push(`${portField(name, key)}: is not one of ${DESCRIBED.join(', ')}`);
    described.set(name, description);
  }
  return described;
}

/** Undefined where balancers could not use it. */
function portOf(port: ServicePort, description: PortDescription, diagnoses: Diagnoses): ExportedPort | undefined {
  const { faults } = diagnoses;
  const name = nameOf(port);
  const protocol = protocolOf(port, description.protocol, diagnoses);
  if (protocol === undefined) return undefined;
  const { port: servicePort, targetPort: target = servicePort, protocol: transport = 'TCP' } = port;
  const common = { name, protocol, servicePort, target, transport };
  if (protocol === 'tcp' || protocol === 'udp') {
    for (const field of ['domainName', 'path'].filter((one) => description[one] !== undefined)) {
      faults.push(`${portField(name, field)}: a port of ${protocol} has none: its protocol must be http or https`);
    }
    return { ...common, host: '', path: '' };
  }
  const { domainName: host, path = '/' } = description;
  if (typeof host !== 'string' || host.length > MAX_HOST_LENGTH || !HOST.test(host)) {
    const what = host === undefined ? `a port of ${protocol} needs a host name` : `${quoted(host)} is not a host name`;
    faults.push(`${portField(name, 'domainName')}: ${what}, such as shop.example.com`);
    return undefined;
  }
  if (typeof path !== 'string' || path.length > MAX_PATH_LENGTH || !PATH.test(path)) {
    faults.push(
      `${portField(name, 'path')}: ${quoted(path)} must begin with "/" and have letters, digits and ._~%+,=:@/-`,
    );
    return undefined;
  }
  if (ODD_SEGMENT.test(path) || ODD_ENCODING.test(path)) {
    faults.push(
      `${portField(name, 'path')}: ${quoted(path)} must not have empty segments, "." or ".." segments, or encoded slashes, dots, percent signs or control characters`,
    );
    return undefined;
  }
  return { ...common, host, path };
}

const APP_PROTOCOLS: Readonly<Record<string, Protocol>> = {
  http: 'http',
  https: 'https',
  tcp: 'tcp',
  udp: 'udp',
  'kubernetes.io/h2c': 'http',
  'kubernetes.io/ws': 'http',
  'kubernetes.io/wss': 'https',
};

/** A balancer that listened for HTTP on the number of a UDP port would take the TCP port of that number. */
function runsOver(protocol: Protocol, transport: string): boolean {
  return transport === (protocol === 'udp' ? 'UDP' : 'TCP');
}

function protocolOf(port: ServicePort, described: unknown, { faults, notes }: Diagnoses): Protocol | undefined {
  const { protocol: transport = 'TCP', appProtocol = '' } = port;
  const known = Object.hasOwn(APP_PROTOCOLS, appProtocol) ? APP_PROTOCOLS[appProtocol] : undefined;
  const usable = known !== undefined && runsOver(known, transport) ? known : undefined;
  const wanted = described === undefined ? (usable ?? transport.toLowerCase()) : described;
  const found = PROTOCOLS.find((one) => one === wanted);
  if (found === undefined || !runsOver(found, transport)) {
    const lack = found === undefined ? `is not one of ${PROTOCOLS.join(', ')}` : `does not run over ${transport}`;
    faults.push(`${portField(nameOf(port), 'protocol')}: ${quoted(wanted)} ${lack}`);
    return undefined;
  }
  if (appProtocol !== '' && usable === undefined && described === undefined) {
    const lack =
      known === undefined ? `is none of ${Object.keys(APP_PROTOCOLS).join(', ')}` : `does not run over ${transport}`;
    const field = `spec.ports[${plain(nameOf(port))}].appProtocol`;
    notes.push(`${field}: ${quoted(appProtocol)} ${lack}: the port is exported as ${found}`);
  }
  return found;
}

function isRecord(value: unknown): value is PortDescription {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const MAX_QUOTED = 80;

/** Text in which a message repeats a value of a user: short, and without characters that do anything. */
function quoted(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  // It may be nested more deeply than JSON.stringify can go.
  if (typeof value === 'object' && value !== null) return 'an object';
  return shortened(JSON.stringify(value) ?? '', MAX_QUOTED);
}
