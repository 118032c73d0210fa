import { serveCalls } from '../process/serve.ts';
import { type Fleet, startFleet } from './fleet.ts';
import type { HistorySummary, RemoteCalls } from './fleet-process.ts';
import type { CommandCounts } from './history.ts';

/** The other end of `forkFleet`: runs one fleet and answers calls over IPC. */

/** The calls of `RemoteCalls`, done in this process. */
type LocalCalls = {
  [Name in keyof RemoteCalls]: (
    ...args: Parameters<RemoteCalls[Name]>
  ) => ReturnType<RemoteCalls[Name]> | Promise<ReturnType<RemoteCalls[Name]>>;
};

let started: Fleet | undefined;

function fleet(): Fleet {
  if (!started) throw new Error('start: the fleet is not started');
  return started;
}

const calls: LocalCalls = {
  start: async (options) => {
    started = await startFleet(options);
  },
  add: async (options) => (await fleet().add(options)).identity,
  announce: () => fleet().announce(),
  announceOver: (overMs) => fleet().announceOver(overMs),
  identities: () => fleet().bases.map((base) => base.identity),
  kill: (identity) => fleet().base(identity).kill(),
  restart: (identity, options) => fleet().base(identity).restart(options),
  moveTo: (identity, target) => fleet().base(identity).moveTo(target),
  beat: (identity) => fleet().base(identity).beat(),
  silence: (identity) => fleet().base(identity).silence(),
  speak: (identity) => fleet().base(identity).speak(),
  disconnect: (identity) => fleet().base(identity).disconnect(),
  reconnect: (identity) => fleet().base(identity).reconnect(),
  modules: (identity) => fleet().base(identity).modules(),
  addressOf: (identity) => {
    const { tunnel, localIP, port } = fleet().base(identity);
    return { tunnel, localIP, port };
  },
  publishRaw: (identity, kind, payload) => fleet().base(identity).publishRaw(kind, payload),
  announceModules: (identity) => fleet().base(identity).announceModules(),
  crashModule: (identity, bizName, bizVersion, to) => fleet().base(identity).crashModule(bizName, bizVersion, to),
  placeModule: (identity, module, state) => fleet().base(identity).placeModule(module, state),
  setMetaspace: (identity, override) => fleet().base(identity).setMetaspace(override),
  setFault: (identity, fault) => {
    (identity === undefined ? fleet() : fleet().base(identity)).setFault(fault);
  },
  clearFaults: (identity) => {
    const holders = identity === undefined ? [fleet(), ...fleet().bases] : [fleet().base(identity)];
    for (const holder of holders) holder.clearFaults();
  },
  mark: () => fleet().history.mark(),
  historySummary: (since) => summaryOf(fleet(), since),
  records: (filter) => fleet().history.records(filter),
  waitFor: (filter, options) => fleet().history.waitFor(filter, options),
};

function summaryOf({ history }: Fleet, since: number): HistorySummary {
  const perBase = history.commandCounts(since);
  const commands: CommandCounts = { installBiz: 0, uninstallBiz: 0, queryAllBiz: 0, health: 0, batchInstallBiz: 0 };
  for (const counts of perBase.values()) {
    for (const [command, count] of Object.entries(counts)) commands[command as keyof CommandCounts] += count;
  }
  return {
    commands,
    perBase: Object.fromEntries(perBase),
    installs: history.installCounts({ since }),
    installsWhileActiveOrInWork: history.installsWhileActiveOrInWork({ since }).length,
  };
}

serveCalls(calls);
