import type { KubeObject } from '../../../kube/objects.ts';
import { MODULE_LABEL } from '../../../labels.ts';
import { CATALOG_ANNOTATION, type ComposedObject } from './compose.ts';
import { isRecord } from './composed-object.ts';

type Path = readonly (string | number)[];

/** Fields of a composed template that are the Module's alone. Without a value in the Module they are not there. */
const TEMPLATE_FIELDS: readonly Path[] = [
  ['metadata', 'labels', MODULE_LABEL.version],
  ['metadata', 'annotations', CATALOG_ANNOTATION.sha256],
  ['spec', 'readinessGates'],
];
const CONTAINER_FIELDS: readonly Path[] = [['args'], ['ports']];

/**
 * JSON pointers of what an object has though only its Module decides about it, and the Module does not have it. They are
 * in an order in which they can be removed: arguments and ports of the module's container, ports of the Service.
 */
export function surplusOf(composed: ComposedObject, live: KubeObject): string[] {
  const template: Path = ['spec', 'template'];
  const paths = [
    ...missingIn(composed, live, template, TEMPLATE_FIELDS),
    ...containersOf(composed).flatMap((container) => {
      const index = listIn(live, [...template, 'spec', 'containers']).findIndex((one) => one.name === container.name);
      if (index === -1) return [];
      const path = [...template, 'spec', 'containers', index];
      const own = valueIn(live, path);
      const fields = missingIn(container, own, [], CONTAINER_FIELDS);
      const ports = surplusPorts(listIn(container, ['ports']), listIn(own, ['ports']), 'containerPort');
      return [...fields, ...ports.map((port) => ['ports', port])].map((rest) => [...path, ...rest]);
    }),
    ...surplusPorts(listIn(composed, ['spec', 'ports']), listIn(live, ['spec', 'ports']), 'port').map((index) => [
      'spec',
      'ports',
      index,
    ]),
  ];
  return paths.map(pointerOf);
}

/** A pointer as people write a field: `spec.template.spec.containers[0].args`. */
export function fieldOf(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key.replaceAll('~1', '/').replaceAll('~0', '~')}`))
    .join('')
    .slice(1);
}

function pointerOf(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function missingIn(composed: unknown, live: unknown, root: Path, fields: readonly Path[]): Path[] {
  return fields
    .map((field) => [...root, ...field])
    .filter((path) => valueIn(composed, path) === undefined && valueIn(live, path) !== undefined);
}

/** Indexes of the ports that are not composed, the last one first; none where no port is. The API server merges ports by number and protocol. */
function surplusPorts(composed: readonly Item[], live: readonly Item[], number: 'port' | 'containerPort'): number[] {
  if (composed.length === 0) return [];
  const keyOf = (port: Item): string => `${port[number]}/${port.protocol ?? 'TCP'}`;
  const known = new Set(composed.map(keyOf));
  return live.flatMap((port, index) => (known.has(keyOf(port)) ? [] : [index])).reverse();
}

type Item = Readonly<Record<string, unknown>>;

function containersOf(composed: ComposedObject): readonly Item[] {
  return listIn(composed, ['spec', 'template', 'spec', 'containers']);
}

function listIn(object: unknown, path: Path): readonly Item[] {
  const value = valueIn(object, path);
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function valueIn(object: unknown, path: Path): unknown {
  let value = object;
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)];
    else value = isRecord(value) ? value[key] : undefined;
  }
  return value;
}
