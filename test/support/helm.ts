import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { parseManifests } from '../../samples/control-plane/manifests.ts';
import { KUBERNETES_VERSION } from '../../samples/control-plane/versions.ts';
import { copyOf } from './copy.ts';
import { ensureGoTool } from './go-tools/programs.ts';

export const CHART = new URL('../../deploy/helm/module-controller/', import.meta.url);

const RELEASE = 'module-controller';

export interface RenderOptions {
  /** As in a values file. Default: none. */
  readonly values?: object;
  /** Default `koupleless-system`. */
  readonly namespace?: string;
}

/** By options: tests ask for the same ones. */
const rendered = new Map<string, Promise<string>>();

/** What `helm install` would send, as text with comments. Rejects with the words of Helm. */
export function renderChart(options: RenderOptions): Promise<string> {
  const key = JSON.stringify(options);
  const known = rendered.get(key) ?? template(options);
  rendered.set(key, known);
  return known;
}

async function template({ values = {}, namespace = 'koupleless-system' }: RenderOptions): Promise<string> {
  return runHelm(['template', RELEASE, '--namespace', namespace, '--kube-version', KUBERNETES_VERSION], values);
}

/** Installs the chart in a real cluster. Does not wait for its Pods. */
export async function installChart({
  kubeconfig,
  namespace,
  values,
}: {
  kubeconfig: string;
  namespace: string;
  values: object;
}): Promise<void> {
  await runHelm(['install', RELEASE, '--namespace', namespace, '--kubeconfig', kubeconfig], values);
}

/**
 * Runs a command of a page in another namespace and with other values. Without `--wait`: no kubelet makes Pods Ready
 * here.
 */
export async function runHelmLine(
  line: string,
  { kubeconfig, namespace, values }: { kubeconfig: string; namespace: string; values: object },
): Promise<void> {
  const [program, verb = '', release = '', ...rest] = line.trim().split(/\s+/);
  const hasChart = rest[0] === 'deploy/helm/module-controller';
  const flags = hasChart ? rest.slice(1) : rest;
  const known = hasChart ? '-n koupleless-system -f values.yaml --wait' : '-n koupleless-system --wait';
  if (program !== 'helm' || release !== RELEASE || flags.join(' ') !== known) throw new Error(`not known: ${line}`);
  const args = [verb, release, '--namespace', namespace, '--kubeconfig', kubeconfig];
  await runHelm(args, hasChart ? values : undefined);
}

export async function uninstallChart(kubeconfig: string, namespace: string): Promise<void> {
  await runHelm(['uninstall', RELEASE, '--namespace', namespace, '--kubeconfig', kubeconfig, '--wait']);
}

/** `values`: with the chart, for verbs that take one. Resolves with what it prints; rejects with its words. */
async function runHelm([verb = '', release = '', ...flags]: readonly string[], values?: object): Promise<string> {
  const helm = await ensureGoTool('helm');
  const directory = await mkdtemp(join(tmpdir(), 'helm-'));
  try {
    const file = join(directory, 'values.json');
    await writeFile(file, JSON.stringify(values ?? {}));
    const chart = values === undefined ? [] : [fileURLToPath(CHART), '--values', file];
    // A user's own settings and plugins do not count.
    const homes = { HELM_CACHE_HOME: directory, HELM_CONFIG_HOME: directory, HELM_DATA_HOME: directory };
    const env = { PATH: process.env.PATH, HOME: directory, ...homes };
    const args = [verb, release, ...chart, ...flags];
    const { stdout } = await promisify(execFile)(helm, args, { env, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  } catch (error) {
    throw new Error(String((error as { stderr?: string }).stderr ?? error).trim());
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** By their text: reading it takes longer than a copy. */
const parsed = new Map<string, KubeObject[]>();

/** The objects of `renderChart`. The caller may change them. */
export async function renderObjects(options: RenderOptions): Promise<KubeObject[]> {
  const text = await renderChart(options);
  const objects = parsed.get(text) ?? parseManifests(text);
  parsed.set(text, objects);
  return copyOf(objects);
}

/** The only object of a kind and name. */
export function objectOf(objects: readonly KubeObject[], kind: string, name: string): KubeObject {
  const found = objects.filter((object) => object.kind === kind && object.metadata.name === name);
  if (found.length !== 1) throw new Error(`${found.length} objects ${kind} ${name}`);
  return found[0];
}
