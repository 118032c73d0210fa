import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeNameOf } from '../../src/labels.ts';
import { poll } from '../control-plane/poll.ts';
import { ensureJars, type Jars, moduleJarOf } from '../jvm/jars.ts';
import { PollingClient } from '../jvm/polling-client.ts';
import { checkPrerequisites } from '../jvm/prerequisites.ts';
import { sampleDeployment } from '../jvm/sample-deployment.ts';
import { nodeFaults } from './checks.ts';
import { JAVA_BASES, JavaBases, JVMS_READY } from './java-bases.ts';
import { printCalls, throwIfFailed } from './java-calls.ts';
import type { RolloutScene } from './rollout-scene.ts';
import type { Output } from './script.ts';
import { ENV, type Stage } from './stage.ts';
import { type Step, type StepContext, untilFaultless } from './step.ts';

const SAMPLE = new URL('../module-rollout.yaml', import.meta.url);
/** Of the sample. */
const SAMPLE_NAME = 'orders';
const PAGE = '/price';
const ANSWERS_WITHIN_MS = 10_000;

/** The module `price` on real JVMs, and a client that calls it on each of them all the time. */
export class JavaScene implements RolloutScene {
  /** A module without web context: two versions of it can be on a base. */
  readonly name = 'price';
  readonly replicas = JAVA_BASES.length;
  readonly prerequisites: readonly Step[] = [
    { name: 'this machine has a JDK, Maven and an address', run: () => checkPrerequisites() },
  ];
  readonly bases: readonly Step[] = [
    { name: 'the Java samples are built', isUnlimited: true, run: () => this.#build() },
    { name: JVMS_READY, run: (context) => this.#startBases(context) },
  ];
  readonly verdict: readonly Step[] = [
    { name: 'no call of the client failed, on any base, from the first version to the last', run: () => this.#judge() },
  ];
  readonly #output: Output;
  #jars: Jars | undefined;
  #javaBases: JavaBases | undefined;
  #client: PollingClient | undefined;
  #manifest = '';

  constructor(output: Output) {
    this.#output = output;
  }

  manifest(): string {
    return this.#manifest;
  }

  startCalls(stage: Stage): void {
    const bases = this.#javaBases;
    if (bases === undefined) throw new Error('the bases are not started');
    const targets = () => bases.pages(PAGE);
    const client = new PollingClient({ targets, onLine: (line) => this.#output.print(`  client ${line}`) });
    stage.stopFirst(() => client.stop());
    this.#client = client;
  }

  async untilAnswered(versions: ReadonlyMap<string, string>): Promise<void> {
    const answers = this.#client?.answers();
    const isSo = (): boolean => JAVA_BASES.every((base) => answers?.get(base) === versions.get(nodeNameOf(base)));
    await poll(async () => isSo() || undefined, {
      what: `the bases to answer ${[...versions].map(([node, version]) => `${version} on ${node}`).join(', ')}`,
      timeoutMs: ANSWERS_WITHIN_MS,
    });
  }

  async #build(): Promise<void> {
    this.#jars = await ensureJars(this.#output.onProgress);
  }

  async #startBases(context: StepContext): Promise<void> {
    const { stage } = context;
    const jars = this.#jars;
    if (jars === undefined) throw new Error('the Java samples are not built');
    this.#javaBases = await stage.startBases((links) => JavaBases.prepare(links, jars));
    await untilFaultless(context, () => nodeFaults(stage.cluster(), stage.bases(), ENV));
    // A file, so that its path has no address in which `sed` could find the number of a version.
    const url = `file://${jars.directory}/${moduleJarOf(this.name, '1.0.0')}`;
    const sample = (await readFile(SAMPLE, 'utf8')).replaceAll(SAMPLE_NAME, this.name);
    this.#manifest = join(stage.controlPlane.directory, `${this.name}.yaml`);
    await writeFile(this.#manifest, sampleDeployment(sample, { version: '1.0.0', url, replicas: this.replicas }));
  }

  async #judge(): Promise<void> {
    const client = this.#client;
    if (client === undefined) throw new Error('the client is not started');
    await client.stop();
    printCalls(client, this.#output.print);
    throwIfFailed(client);
  }
}
