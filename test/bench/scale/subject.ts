import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Remote, remoteOf } from '../../../samples/process/remote.ts';
import type { ControllerProcess, World } from '../../support/world.ts';
import { startFloor } from './floor/floor-process.ts';
import type { ProbeCalls } from './probe/probe.ts';

export const SUBJECTS = ['controller', 'floor'] as const;
export type SubjectName = (typeof SUBJECTS)[number];

export function subjectOf(name: string): SubjectName {
  const subject = SUBJECTS.find((known) => known === name);
  if (subject === undefined) throw new Error(`no subject ${name}`);
  return subject;
}

/** What is measured: makes Nodes of bases, and has Pods installed. */
export interface Subject {
  readonly name: SubjectName;
  readonly pid: number;
  /** Absent where nothing is told. */
  readonly probe?: Remote<ProbeCalls>;
  kill(): Promise<void>;
}

const SERVICE_ACCOUNT = 'koupleless-system/module-controller';
/**
 * Where `src/main.js` has it too. The probe is TypeScript and comes first: without a cache it would bring in the
 * compiler, 25 MiB that would count as the controller's.
 */
const NODE_COMPILE_CACHE = join(tmpdir(), 'node-compile-cache');
const PRELOAD = new URL('./probe/probe-preload.ts', import.meta.url).href;

/** Resolves when it hears bases and Pods. */
export function startSubject(name: SubjectName, world: World): Promise<Subject> {
  return name === 'floor' ? startFloorSubject(world) : startController(world);
}

async function startFloorSubject({ controlPlane, broker, env }: World): Promise<Subject> {
  const credential = await controlPlane.credential({ serviceAccount: SERVICE_ACCOUNT });
  if (!('token' in credential)) throw new Error('a ServiceAccount has a token');
  const { server, certificateAuthority } = controlPlane;
  const floor = await startFloor({ server, certificateAuthority, token: credential.token, brokerUrl: broker.url, env });
  return { name: 'floor', pid: floor.pid, kill: () => floor.stop() };
}

/** Whether the first start of this source is over: it has the compiler in it, which the image has used up as well. */
let isCompiled = false;

async function startController(world: World): Promise<Subject> {
  const controller = await launchController(world);
  await controller.process.line(({ msg }) => msg === 'tunnel is up');
  if (isCompiled) return controller;
  await controller.probe?.keepCompiled();
  await controller.kill();
  isCompiled = true;
  return startController(world);
}

/** Does not wait for anything. */
export async function launchController(world: World): Promise<Subject & { readonly process: ControllerProcess }> {
  const process = await world.launchController({ NODE_OPTIONS: `--import ${PRELOAD}`, NODE_COMPILE_CACHE });
  return {
    name: 'controller',
    pid: process.child.pid ?? Number.NaN,
    process,
    probe: remoteOf<ProbeCalls>('controller', process.child),
    kill: async () => {
      await process.stop('SIGKILL');
    },
  };
}
