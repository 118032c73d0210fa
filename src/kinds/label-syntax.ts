/** Syntax of labels, annotations and names, as the API server checks them. */

const MAX_NAME_LENGTH = 63;
const MAX_PREFIX_LENGTH = 253;
const NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

type Texts = Readonly<Record<string, string>>;

/** The key of a label, an annotation or a taint: `name`, or `example.com/name`. */
export function isQualifiedName(text: string): boolean {
  const [name = '', prefix, ...others] = text.split('/').reverse();
  if (others.length > 0 || name.length > MAX_NAME_LENGTH || !NAME.test(name)) return false;
  return prefix === undefined || isSubdomain(prefix);
}

export function isLabelValue(text: string): boolean {
  return text === '' || (text.length <= MAX_NAME_LENGTH && NAME.test(text));
}

/** Names of Nodes and service accounts. */
export function isSubdomain(text: string): boolean {
  return text.length <= MAX_PREFIX_LENGTH && SUBDOMAIN.test(text);
}

/** Names of containers, volumes and namespaces. */
export function isDnsLabel(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && DNS_LABEL.test(text);
}

/** Keys and values that labels cannot have. */
export function labelFaultsOf(labels: Texts, path: string): string[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...keyFaults(key, path, 'a label'),
    ...(isLabelValue(value) ? [] : [`${path}[${shown(key)}]: ${shown(value)} cannot be the value of a label`]),
  ]);
}

const MAX_ANNOTATION_BYTES = 256 * 1024;

/** Keys that annotations cannot have. Their values may be anything, but not too long together. */
export function annotationFaultsOf(annotations: Texts, path: string): string[] {
  const entries = Object.entries(annotations);
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  return [
    ...entries.flatMap(([key]) => keyFaults(key.toLowerCase(), path, 'an annotation')),
    ...(size > MAX_ANNOTATION_BYTES ? [`${path}: has ${size} bytes, ${MAX_ANNOTATION_BYTES} are allowed`] : []),
  ];
}

function keyFaults(key: string, path: string, what: string): string[] {
  return isQualifiedName(key) ? [] : [`${path}: ${shown(key)} cannot be the key of ${what}`];
}

/** In quotes, and with control characters visible. */
export function shown(text: string): string {
  return JSON.stringify(text);
}
