import { fileURLToPath } from 'node:url';
import { spawnGuarded } from '../../../../samples/control-plane/guard.ts';
import { poll } from '../../../../samples/control-plane/poll.ts';
import { startRemote } from '../../../../samples/process/remote.ts';
import { childPidsOf } from '../../../support/cost.ts';
import type { OwnWorld } from '../../../support/world.ts';
import { kwokProgram } from './program.ts';

export const KWOK_USER = 'kwok';

const CONFIG = fileURLToPath(new URL('./kwok.yaml', import.meta.url));
const READY_WITHIN_MS = 30_000;
const KEPT_CHARACTERS = 2_000;

export interface NodeMakerOptions {
  readonly server: string;
  readonly certificateAuthority: string;
  readonly token: string;
  readonly brokerUrl: string;
  readonly env: string;
}

/** What `node-maker-child.ts` answers to. */
export interface NodeMakerCalls {
  start(options: NodeMakerOptions): Promise<void>;
}

export interface Kwok {
  readonly pid: number;
  /** Makes a Node at the first heartbeat of each base, which kwok knows nothing of. */
  readonly helperPids: readonly number[];
  kill(): Promise<void>;
}

/** kwok, which plays the kubelets of all Nodes and installs nothing. Resolves when it watches Nodes and Pods. */
export async function startKwok({ controlPlane }: OwnWorld, options: NodeMakerOptions): Promise<Kwok> {
  const kubeconfig = await controlPlane.kubeconfig({ user: KWOK_USER, groups: ['system:masters'] });
  const guard = spawnGuarded(kwokProgram(), ['--kubeconfig', kubeconfig, '--config', CONFIG]);
  let tail = '';
  guard.stdout.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-KEPT_CHARACTERS);
  });
  const endKwok = (): void => {
    guard.stdin.end();
  };
  try {
    const isWatching = async (resource: string): Promise<boolean> =>
      (await controlPlane.requestCounts({ user: KWOK_USER, verb: 'watch', resource })).count() > 0;
    await poll(async () => ((await isWatching('nodes')) && (await isWatching('pods')) ? true : undefined), {
      what: 'kwok to watch Nodes and Pods',
      timeoutMs: READY_WITHIN_MS,
    });
    const [pid] = childPidsOf(guard.pid ?? Number.NaN);
    if (pid === undefined) throw new Error('kwok has ended');
    const child = new URL('./node-maker-child.ts', import.meta.url);
    const maker = await startRemote<NodeMakerCalls>('node maker', child, options);
    const kill = async (): Promise<void> => {
      endKwok();
      await maker.stop();
    };
    return { pid, helperPids: [maker.pid], kill };
  } catch (error) {
    endKwok();
    throw new Error(`${error instanceof Error ? error.message : error}; end of the log of kwok:\n${tail}`, {
      cause: error,
    });
  }
}
