import { type Fleet, startFleet } from './fleet.ts';
import type { HistorySummary, RemoteCalls, RemoteReply, RemoteRequest } from './fleet-process.ts';
import type { CommandCounts } from './history.ts';

/** The other end of `forkFleet`: runs one fleet and answers calls over IPC. */

/** The calls of `RemoteCalls`, done in this process. */
type LocalCalls = {
  [Name in keyof RemoteCalls]: (
    ...args: Parameters<RemoteCalls[Name]>
  ) => ReturnType<RemoteCalls[Name]> | Promise<ReturnType<RemoteCalls[Name]>>;
};

function localCallsOf(fleet: Fleet): LocalCalls {
  return {
    add: async (options) => (await fleet.add(options)).identity,
    announce: () => fleet.announce(),
    identities: () => fleet.bases.map((base) => base.identity),
    kill: (identity) => fleet.base(identity).kill(),
    restart: (identity, options) => fleet.base(identity).restart(options),
    moveTo: (identity, target) => fleet.base(identity).moveTo(target),
    beat: (identity) => fleet.base(identity).beat(),
    silence: (identity) => fleet.base(identity).silence(),
    speak: (identity) => fleet.base(identity).speak(),
    disconnect: (identity) => fleet.base(identity).disconnect(),
    reconnect: (identity) => fleet.base(identity).reconnect(),
    modules: (identity) => fleet.base(identity).modules(),
    addressOf: (identity) => {
      const { tunnel, localIP, port } = fleet.base(identity);
      return { tunnel, localIP, port };
    },
    publishRaw: (identity, kind, payload) => fleet.base(identity).publishRaw(kind, payload),
    announceModules: (identity) => fleet.base(identity).announceModules(),
    crashModule: (identity, bizName, bizVersion, to) => fleet.base(identity).crashModule(bizName, bizVersion, to),
    placeModule: (identity, module, state) => fleet.base(identity).placeModule(module, state),
    setMetaspace: (identity, override) => fleet.base(identity).setMetaspace(override),
    setFault: (identity, fault) => {
      (identity === undefined ? fleet : fleet.base(identity)).setFault(fault);
    },
    clearFaults: (identity) => {
      const holders = identity === undefined ? [fleet, ...fleet.bases] : [fleet.base(identity)];
      for (const holder of holders) holder.clearFaults();
    },
    mark: () => fleet.history.mark(),
    historySummary: (since) => summaryOf(fleet, since),
    records: (filter) => fleet.history.records(filter),
    waitFor: (filter, options) => fleet.history.waitFor(filter, options),
  };
}

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

let calls: LocalCalls | undefined;

async function perform(request: RemoteRequest): Promise<unknown> {
  if ('start' in request) {
    calls = localCallsOf(await startFleet(request.start));
    return undefined;
  }
  if (!calls) throw new Error('start: the fleet is not started');
  if (!Object.hasOwn(calls, request.call)) throw new Error(`call: a fleet knows no call ${request.call}`);
  const call = calls[request.call] as (...args: unknown[]) => unknown;
  // JSON on its way turns undefined into null.
  return call(...request.args.map((argument) => argument ?? undefined));
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

process.on('message', (request: RemoteRequest) => {
  const reply = (rest: Omit<RemoteReply, 'id'>): unknown => process.send?.({ id: request.id, ...rest });
  perform(request).then(
    (result) => reply({ result }),
    (error) => reply({ error: textOf(error) }),
  );
});
// The parent is gone: nobody is left to stop this process.
process.once('disconnect', () => process.exit());
