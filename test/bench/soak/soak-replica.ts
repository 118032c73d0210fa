import { readdir, readlink } from 'node:fs/promises';
import { type Remote, remoteOf } from '../../../samples/process/remote.ts';
import type { Replica } from '../../support/cluster/replica.ts';
import { metricOf } from '../../support/metric-text.ts';
import type { ControllerProcess } from '../../support/world.ts';
import type { ProbeCalls } from '../scale/probe/probe.ts';
import type { Watched } from '../usage.ts';
import { sizeGaugesOf } from './gauges.ts';
import type { ReplicaSample } from './sample.ts';

const KEPT_LINES = 200;
/** V8 goes on making better code for half an hour, and has its own spaces for it. */
const CODE_SPACES = /space="(code|trusted)/;

interface Probed {
  readonly process: ControllerProcess;
  readonly probe: Remote<ProbeCalls>;
  readonly metricsUrl: string;
}

/** A replica that tells about itself, and may be killed and started again. */
export class SoakReplica implements Watched {
  readonly name: string;
  readonly #replica: Replica;
  /** undefined: not up. */
  #probed: Probed | undefined;

  constructor(replica: Replica) {
    this.#replica = replica;
    this.name = replica.clientId;
  }

  get isUp(): boolean {
    return this.#probed !== undefined && this.#replica.isAlive;
  }

  get pid(): number {
    return this.#replica.process.child.pid ?? Number.NaN;
  }

  /** Resolves when it hears bases. */
  async start(): Promise<void> {
    const process = await this.#replica.start();
    await process.line(({ msg }) => msg === 'tunnel is up');
    const metricsUrl = `http://127.0.0.1:${await process.port('metrics')}/metrics`;
    this.#probed = { process, probe: remoteOf<ProbeCalls>(this.name, process.child), metricsUrl };
  }

  async kill(): Promise<void> {
    const process = this.#probed?.process;
    this.#probed = undefined;
    await this.#replica.end('SIGKILL');
    // The world keeps its processes, in a night some hundred.
    process?.lines.splice(0);
  }

  /** undefined: it is not up, or was killed meanwhile. */
  async sample(): Promise<ReplicaSample | undefined> {
    const probed = this.#probed;
    if (!probed || !this.isUp) return undefined;
    try {
      return await sampleOf(this.name, probed);
    } catch (error) {
      if (this.#probed === probed && this.isUp) throw error;
      return undefined;
    }
  }

  /** After its process has ended. */
  stop(): Promise<void> {
    return this.#replica.stop();
  }
}

async function sampleOf(replica: string, { process, probe, metricsUrl }: Probed): Promise<ReplicaSample> {
  // Kept for whoever looks for a line; all lines of a night are too many.
  process.lines.splice(0, Math.max(0, process.lines.length - KEPT_LINES));
  const { p99: loopDelayP99 } = await probe.takeLoopDelay();
  const { heapUsed, external, resident } = await probe.memory();
  const text = await (await fetch(metricsUrl)).text();
  const code = metricOf(text, 'nodejs_heap_space_size_used_bytes', (labels) => CODE_SPACES.test(labels));
  return {
    replica,
    heap: heapUsed - code,
    code,
    external,
    resident,
    sockets: await socketsOf(probe.pid),
    loopDelayP99,
    ended: metricOf(text, 'module_controller_pod_deletes_total'),
    gauges: sizeGaugesOf(text),
  };
}

/** Sockets that a process has open; one that is closed while we look is none. */
export async function socketsOf(pid: number): Promise<number> {
  const directory = `/proc/${pid}/fd`;
  const links = (await readdir(directory)).map((name) => readlink(`${directory}/${name}`).catch(() => ''));
  return (await Promise.all(links)).filter((target) => target.startsWith('socket:')).length;
}
