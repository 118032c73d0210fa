import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { ControlPlane } from '../../samples/control-plane/control-plane.ts';
import type { ContainerStatus, PodObject } from '../../src/kube/objects.ts';
import { pods } from './observe.ts';

/**
 * What the Pods of an ENV show in the end, one line a Pod, without what differs from run to run: times, UIDs, and
 * names that contain the ENV. Two ENVs that did the same work have the same.
 */
export async function endStateOf(admin: ControlPlane['admin'], env: string): Promise<string[]> {
  const ofEnv = (await pods(admin)).filter(({ spec }) => spec.nodeName?.startsWith(`vnode.${env}-`));
  return ofEnv.map((pod) => lineOf(pod).replaceAll(env, 'ENV')).sort();
}

function lineOf({ metadata, spec, status = {} }: PodObject): string {
  const conditions = (status.conditions ?? []).map(({ type, status: is, reason = '' }) => `${type}=${is}${reason}`);
  const name = metadata.labels?.app ?? metadata.name;
  const containers = JSON.stringify((status.containerStatuses ?? []).map(timeless));
  return [spec.nodeName, name, status.phase, status.reason, ...conditions.sort(), containers].join(' ');
}

function timeless({ containerID: _id, state = {}, lastState = {}, ...rest }: ContainerStatus) {
  const kinds = (of: object): string => Object.keys(of).join();
  return { ...rest, state: kinds(state), reason: state.waiting?.reason, lastState: kinds(lastState) };
}

/** The modules that those Pods ask their Nodes for, by Node, as `name:version ACTIVATED`. */
export function modulesWanted(of: readonly PodObject[]): Record<string, string[]> {
  const byNode = Map.groupBy(of, ({ spec }) => spec.nodeName ?? '');
  const entries = [...byNode].map(([node, group]): [string, string[]] => [
    node,
    group
      .flatMap(({ spec }) =>
        spec.containers.map(
          ({ name, env }) => `${name}:${env?.find((entry) => entry.name === 'BIZ_VERSION')?.value} ACTIVATED`,
        ),
      )
      .sort(),
  ]);
  return Object.fromEntries(entries);
}

/** What the bases have, in the same form; a base without modules is left out. */
export function modulesOn({ bases }: Fleet): Record<string, string[]> {
  const entries = bases.map((base): [string, string[]] => [
    `vnode.${base.identity}`,
    base
      .modules()
      .map(({ bizName, bizVersion, state }) => `${bizName}:${bizVersion} ${state}`)
      .sort(),
  ]);
  return Object.fromEntries(entries.filter(([, modules]) => modules.length > 0));
}
