import { readFile } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';
import { ControllerError, messageOf } from '../../errors.ts';
import { configInvalid } from './cluster-access.ts';
import { ConfigFields } from './config-fields.ts';

type Entries = Map<string, ConfigFields>;

/** What the current context of one or several merged kubeconfigs points to. */
export interface SelectedContext {
  readonly cluster: ConfigFields;
  readonly user: ConfigFields;
}

interface Kubeconfig {
  readonly clusters: Entries;
  readonly contexts: Entries;
  readonly users: Entries;
  /** The document that names the current context. */
  readonly current: ConfigFields | undefined;
}

/**
 * Reads a list of paths in the form of `KUBECONFIG`. As in client-go, the first file wins name by name, and
 * files of a longer list may be absent.
 */
export async function readKubeconfigs(pathList: string): Promise<SelectedContext> {
  const paths = pathList.split(delimiter).filter((path) => path !== '');
  const read = await Promise.all(paths.map((path) => readKubeconfig(resolve(path), paths.length > 1)));
  const found = read.filter((config) => config !== undefined);
  if (found.length === 0) throw configInvalid(pathList, 'no kubeconfig found');
  return selectContext(merge(found), pathList);
}

async function readKubeconfig(file: string, mayBeAbsent: boolean): Promise<Kubeconfig | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (mayBeAbsent && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw configInvalid(file, `cannot be read: ${messageOf(error)}`, error);
  }
  const document = new ConfigFields(file, '', await parseYaml(file, text));
  return {
    clusters: entriesOf(document, 'clusters', 'cluster'),
    contexts: entriesOf(document, 'contexts', 'context'),
    users: entriesOf(document, 'users', 'user'),
    current: document.has('current-context') ? document : undefined,
  };
}

async function parseYaml(file: string, text: string): Promise<unknown> {
  // Not needed in a Pod.
  const { parse } = await import('yaml');
  try {
    // Pretty errors quote the source, which holds secrets.
    return parse(text, { prettyErrors: false });
  } catch (error) {
    throw new ControllerError('Kube.ConfigInvalid', `${file}: is not YAML: ${messageOf(error)}`);
  }
}

function entriesOf(document: ConfigFields, list: string, field: string): Entries {
  const entries: Entries = new Map();
  for (const [position, value] of document.list(list).entries()) {
    const name = new ConfigFields(document.file, `${list}[${position}]`, value).requiredString('name');
    const entry = new ConfigFields(document.file, `${list}[${name}]`, value);
    if (!entries.has(name)) entries.set(name, entry.fields(field));
  }
  return entries;
}

function merge(configs: readonly Kubeconfig[]): Kubeconfig {
  const firstWins = (kind: 'clusters' | 'contexts' | 'users'): Entries =>
    new Map(configs.toReversed().flatMap((config) => [...config[kind]]));
  return {
    clusters: firstWins('clusters'),
    contexts: firstWins('contexts'),
    users: firstWins('users'),
    current: configs.find((config) => config.current)?.current,
  };
}

function selectContext(config: Kubeconfig, pathList: string): SelectedContext {
  const { current } = config;
  if (!current) throw configInvalid(`${pathList}: current-context`, 'is missing');
  const context = lookUp(config.contexts, current, 'current-context', 'context');
  return {
    cluster: lookUp(config.clusters, context, 'cluster', 'cluster'),
    user: context.has('user')
      ? lookUp(config.users, context, 'user', 'user')
      : new ConfigFields(context.file, 'user', {}),
  };
}

function lookUp(entries: Entries, from: ConfigFields, field: string, kind: string): ConfigFields {
  const name = from.requiredString(field);
  const entry = entries.get(name);
  if (!entry) throw configInvalid(from.where(field), `there is no ${kind} "${name}"`);
  return entry;
}
