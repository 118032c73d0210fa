import { nodeNameOf } from '../../src/labels.ts';
import { poll } from '../control-plane/poll.ts';
import { ensureJars, type Jars, moduleJarOf, type Version } from '../jvm/jars.ts';
import { ask, PollingClient } from '../jvm/polling-client.ts';
import { checkPrerequisites } from '../jvm/prerequisites.ts';
import { ReadyEndpoints } from '../jvm/ready-endpoints.ts';
import { sampleDeployment } from '../jvm/sample-deployment.ts';
import { nodeFaults, type Rollout, removalFaults, rolloutFaults } from './checks.ts';
import { JAVA_BASES, JavaBases, JVMS_READY } from './java-bases.ts';
import { printCalls, throwIfFailed } from './java-calls.ts';
import { deleteDeployment, type Output, openingSteps, type ScriptOf } from './script.ts';
import { ENV, type Stage } from './stage.ts';
import { type Step, type StepContext, untilFaultless } from './step.ts';

const SHOP = { manifest: 'samples/java/shop/deployment.yaml', path: '/shop/version' };
const PRICE = { manifest: 'samples/java/price/deployment.yaml', path: '/price' };
const [FIRST] = JAVA_BASES;

/** Real modules on real JVMs, and a client that calls them all the while. */
export const javaScript: ScriptOf = ({ isOnce }, output) => {
  const play = new JavaPlay(output);
  const steps: Step[] = [
    { name: 'this machine has a JDK, Maven and an address', run: () => checkPrerequisites() },
    ...openingSteps(output),
    { name: 'the Java samples are built', isUnlimited: true, run: () => play.build() },
    {
      name: JVMS_READY,
      run: (context) => play.startBases(context),
    },
    {
      name: `Deployment shop 1.0.0, a web module, rolls out on ${JAVA_BASES.length} bases, and each serves it`,
      run: (context) => play.deployShop(context, '1.0.0'),
    },
    {
      name: 'rolling update of shop to 2.0.0, and no call of a client fails meanwhile',
      run: (context) => play.updateShop(context),
    },
    {
      name: `Deployment price 1.0.0, a module that ${FIRST} itself calls`,
      run: (context) => play.deployPrice(context, '1.0.0'),
    },
    {
      name: `rolling update of price to 2.0.0 on that one base, and no call fails meanwhile`,
      run: (context) => play.updatePrice(context),
    },
  ];
  const removal: Step = {
    name: 'both Deployments are deleted, and no base serves the modules any more',
    run: (context) => play.remove(context),
  };
  return { steps: isOnce ? [...steps, removal] : steps, hints: () => play.hints() };
};

class JavaPlay {
  readonly #output: Output;
  #jars: Jars | undefined;
  #bases: JavaBases | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  hints(): string[] {
    const calls = this.#started()
      .pages(SHOP.path)
      .map(({ url }) => `curl ${url}`);
    return [...calls, 'kubectl scale deployment/shop --replicas=1'];
  }

  async build(): Promise<void> {
    this.#jars = await ensureJars(this.#output.onProgress);
  }

  async startBases(context: StepContext): Promise<void> {
    const { stage } = context;
    this.#bases = await stage.startBases((links) => JavaBases.prepare(links, this.#built()));
    await untilFaultless(context, () => nodeFaults(stage.cluster(), stage.bases(), ENV));
  }

  /** The jar comes over http. */
  async deployShop(context: StepContext, version: Version): Promise<void> {
    const jar = moduleJarOf('shop', version);
    await this.#rollOut(context, { name: 'shop', version, url: this.#started().jarServer.urlOf(jar) }, SHOP.manifest);
    for (const { base, url } of this.#started().pages(SHOP.path)) await expectAnswer(base, url, version);
  }

  /** The jar is a file. */
  async deployPrice(context: StepContext, version: Version): Promise<void> {
    const url = `file://${this.#built().directory}/${moduleJarOf('price', version)}`;
    await this.#rollOut(context, { name: 'price', version, url, onlyOn: FIRST }, PRICE.manifest);
    const [page] = this.#pricePages();
    if (page) await expectAnswer(page.base, page.url, version);
  }

  async updateShop(context: StepContext): Promise<void> {
    const endpoints = new ReadyEndpoints(context.stage.controlPlane.admin, { service: 'shop' });
    await endpoints.start();
    try {
      const targets = () => this.#started().pages(SHOP.path, endpoints.nodes());
      await this.#watched(targets, JAVA_BASES, () => this.deployShop(context, '2.0.0'));
    } finally {
      await endpoints.stop();
    }
  }

  async updatePrice(context: StepContext): Promise<void> {
    const targets = () => this.#pricePages();
    await this.#watched(targets, [FIRST], () => this.deployPrice(context, '2.0.0'));
  }

  async remove(context: StepContext): Promise<void> {
    const { stage } = context;
    for (const name of ['shop', 'price']) await deleteDeployment(stage, name);
    await untilFaultless(context, () => [
      ...removalFaults(stage.cluster(), stage.bases(), 'shop'),
      ...removalFaults(stage.cluster(), stage.bases(), 'price'),
    ]);
    for (const { base, url } of this.#started().pages(SHOP.path)) await this.#expectStatus(base, url, 404);
    for (const { base, url } of this.#pricePages()) await this.#expectStatus(base, url, 503);
  }

  /** Runs `change`, from 1.0.0 to 2.0.0, with a client that calls meanwhile; throws when one of its calls failed. */
  async #watched(
    targets: () => { base: string; url: string }[],
    bases: readonly string[],
    change: () => Promise<void>,
  ): Promise<void> {
    const client = new PollingClient({ targets, onLine: (line) => this.#output.print(`  client ${line}`) });
    try {
      await allAnswer(client, bases, '1.0.0');
      await change();
      await allAnswer(client, bases, '2.0.0');
    } finally {
      await client.stop();
      printCalls(client, this.#output.print);
    }
    throwIfFailed(client);
  }

  async #rollOut(context: StepContext, wanted: Wanted, manifest: string): Promise<void> {
    const { stage } = context;
    const { generation, replicas } = await applyTo(stage, manifest, wanted);
    const rollout: Rollout = { name: wanted.name, version: wanted.version, replicas, generation };
    await untilFaultless(context, () => rolloutFaults(stage.cluster(), stage.bases(), rollout));
  }

  async #expectStatus(base: string, url: string, wanted: number): Promise<void> {
    const { status } = await ask(url);
    this.#output.print(`  ${base} answers ${status} to ${new URL(url).pathname}`);
    if (status !== wanted) throw new Error(`${base}: ${url} answers ${status}, not ${wanted}`);
  }

  #pricePages() {
    return this.#started()
      .pages(PRICE.path)
      .filter(({ base }) => base === FIRST);
  }

  #built(): Jars {
    if (this.#jars === undefined) throw new Error('the Java samples are not built');
    return this.#jars;
  }

  #started(): JavaBases {
    if (this.#bases === undefined) throw new Error('the bases are not started');
    return this.#bases;
  }
}

interface Wanted {
  readonly name: string;
  readonly version: Version;
  /** Of the jar. */
  readonly url: string;
  /** One copy, on this base. Default: one on each. */
  readonly onlyOn?: string;
}

async function applyTo(stage: Stage, manifest: string, { version, url, onlyOn }: Wanted) {
  const replicas = onlyOn === undefined ? JAVA_BASES.length : 1;
  const node = onlyOn === undefined ? undefined : nodeNameOf(onlyOn);
  const edit = (text: string) => sampleDeployment(text, { version, url, replicas, node });
  return { generation: await stage.apply(manifest, edit), replicas };
}

function allAnswer(client: PollingClient, bases: readonly string[], version: Version): Promise<true> {
  const isSo = () => bases.every((base) => client.answers().get(base) === version);
  return poll(async () => isSo() || undefined, { what: `${bases.join(', ')} to answer ${version}`, timeoutMs: 10_000 });
}

/** Once: a Pod that is Ready serves. */
async function expectAnswer(base: string, url: string, version: Version): Promise<void> {
  const { status, text } = await ask(url);
  if (status === 0) throw new Error(`${base}: ${url} gives no answer: ${text}`);
  if (status !== 200 || text !== version) throw new Error(`${base}: ${url} answers ${status} ${text}, not ${version}`);
}
