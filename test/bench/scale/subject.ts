import { type Remote, remoteOf } from '../../../samples/process/remote.ts';
import { CONTROLLER_USER, type ControllerProcess, type OwnWorld } from '../../support/world.ts';
import type { ProfileCalls } from '../profiler.ts';
import { startFloor } from './floor/floor-process.ts';
import { KWOK_USER, startKwok } from './kwok/kwok.ts';
import { PROBED, type ProbeCalls } from './probe/probe.ts';

/**
 * How many writes the floor has in flight. Which number is best depends on the machine and the case: too few leave the
 * API server idle, too many make everything that runs beside it wait.
 */
const FLOOR_CONNECTIONS = [8, 16, 32, 64, 128] as const;
type FloorName = `floor ${(typeof FLOOR_CONNECTIONS)[number]}`;
const FLOORS = FLOOR_CONNECTIONS.map((connections): FloorName => `floor ${connections}`);

/** What is measured, and what it is compared with. */
export const SUBJECTS: readonly SubjectName[] = ['controller', ...FLOORS, 'kwok'];
/** Where writes are too few to stand in line. */
export const STEADY_SUBJECTS: readonly SubjectName[] = ['controller', 'floor 16'];
export type SubjectName = 'controller' | FloorName | 'kwok';

export function subjectOf(name: string): SubjectName {
  const subject = SUBJECTS.find((known) => known === name);
  if (subject === undefined) throw new Error(`no subject ${name}`);
  return subject;
}

/** What is measured: makes Nodes of bases, and has Pods installed. */
export interface Subject {
  readonly name: SubjectName;
  readonly pid: number;
  /** Other processes that do a part of the work. */
  readonly helperPids?: readonly number[];
  /** Absent where nothing is reported. */
  readonly probe?: Remote<ProbeCalls>;
  /** Absent where it is no program of Node. */
  readonly profiler?: ProfileCalls;
  kill(): Promise<void>;
}

/** The users of all subjects: the only ones whose requests are counted. */
export const SUBJECT_USERS: readonly string[] = [CONTROLLER_USER, KWOK_USER];

const SERVICE_ACCOUNT = 'koupleless-system/module-controller';
/** Resolves when it hears bases and Pods. */
export async function startSubject(name: SubjectName, world: OwnWorld): Promise<Subject> {
  if (name === 'controller') return startController(world);
  const options = await floorOptionsOf(world);
  if (name === 'kwok') return { name, ...(await startKwok(world, options)) };
  const floor = await startFloor({ ...options, connections: Number(name.slice('floor '.length)) });
  return { name, pid: floor.pid, profiler: floor, kill: () => floor.stop() };
}

async function floorOptionsOf({ controlPlane, broker, env }: OwnWorld) {
  const credential = await controlPlane.credential({ serviceAccount: SERVICE_ACCOUNT });
  if (!('token' in credential)) throw new Error('a ServiceAccount has a token');
  const { server, certificateAuthority } = controlPlane;
  return { server, certificateAuthority, token: credential.token, brokerUrl: broker.url, env };
}

/** Whether the first start of this source is over: it has the compiler in it, which the image has used up as well. */
let isCompiled = false;

async function startController(world: OwnWorld): Promise<Subject> {
  const controller = await launchController(world);
  await controller.process.line(({ msg }) => msg === 'tunnel is up');
  if (isCompiled) return controller;
  await controller.probe?.keepCompiled();
  await controller.kill();
  isCompiled = true;
  return startController(world);
}

/** `preStop.sleep` of Pods that have none; the floor and kwok have no sleep. */
const { PRE_STOP_SLEEP_SECONDS = '0' } = process.env;

/** Does not wait for anything. */
export async function launchController(world: OwnWorld): Promise<Subject & { readonly process: ControllerProcess }> {
  const started = await world.launchController({ ...PROBED, PRE_STOP_SLEEP_SECONDS });
  const probe = remoteOf<ProbeCalls>('controller', started.child);
  return {
    name: 'controller',
    pid: started.child.pid ?? Number.NaN,
    process: started,
    probe,
    profiler: probe,
    kill: async () => {
      await started.stop('SIGKILL');
    },
  };
}
