import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BaseHealth, BaseInfo } from '../../src/tunnel/base.ts';
import type { ModuleStatus, OperationResult } from '../../src/tunnel/module.ts';
import type { BaseAddress, Envelope, Tunnel, TunnelHandler, TunnelName } from '../../src/tunnel/tunnel.ts';

export type Call =
  | { readonly on: 'heartbeat'; readonly envelope: Envelope; readonly base: BaseInfo }
  | { readonly on: 'health'; readonly envelope: Envelope; readonly health: BaseHealth }
  | { readonly on: 'moduleList'; readonly envelope: Envelope; readonly modules: readonly ModuleStatus[] }
  | { readonly on: 'operationResult'; readonly envelope: Envelope; readonly result: OperationResult }
  | { readonly on: 'baselineQuery'; readonly envelope: Envelope }
  | { readonly on: 'goingDown'; readonly envelope: Envelope }
  | { readonly on: 'connectionRefused'; readonly tunnel: TunnelName; readonly base: BaseAddress }
  | { readonly on: 'linkUp' | 'linkDown'; readonly tunnel: TunnelName };

/** Keeps what a tunnel says, in order. */
export class RecordingHandler implements TunnelHandler {
  readonly calls: Call[] = [];
  /** Thrown by every call that it returns something for. */
  throwOn: (call: Call) => Error | undefined = () => undefined;
  readsLists = true;
  readonly #waiting = new Set<() => void>();

  /** Resolves with the first `count` calls of the kind, those of the past included; a test's timeout ends the wait. */
  async first<K extends Call['on']>(on: K, count = 1): Promise<Extract<Call, { on: K }>[]> {
    for (;;) {
      const found = this.calls.filter((call): call is Extract<Call, { on: K }> => call.on === on);
      if (found.length >= count) return found.slice(0, count);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  onHeartbeat = (envelope: Envelope, base: BaseInfo): void => this.#add({ on: 'heartbeat', envelope, base });
  admitList = (): boolean => this.readsLists;
  onHealth = (envelope: Envelope, health: BaseHealth): void => this.#add({ on: 'health', envelope, health });
  onModuleList = (envelope: Envelope, modules: readonly ModuleStatus[]): void =>
    this.#add({ on: 'moduleList', envelope, modules });
  onOperationResult = (envelope: Envelope, result: OperationResult): void =>
    this.#add({ on: 'operationResult', envelope, result });
  onGoingDown = (envelope: Envelope): void => this.#add({ on: 'goingDown', envelope });
  onBaselineQuery = (envelope: Envelope): void => this.#add({ on: 'baselineQuery', envelope });
  onConnectionRefused = (tunnel: TunnelName, base: BaseAddress): void =>
    this.#add({ on: 'connectionRefused', tunnel, base });
  onLinkUp = (tunnel: TunnelName): void => this.#add({ on: 'linkUp', tunnel });
  onLinkDown = (tunnel: TunnelName): void => this.#add({ on: 'linkDown', tunnel });

  #add(call: Call): void {
    this.calls.push(call);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    const error = this.throwOn(call);
    if (error) throw error;
  }
}

export interface ReceivedCommand {
  /** arklet's word: installBiz, uninstallBiz, switchBiz, queryAllBiz, health. */
  readonly command: string;
  readonly body: string;
}

/** Operations that have left and are not finished. */
export interface Stall {
  /** Resolves when so many have left. */
  left(count: number): Promise<void>;
  /** Finishes them, and stalls no other. */
  end(): void;
}

/** A tunnel that is not yet running and one real base behind its transport, played by the test. */
export interface TunnelWorld {
  readonly tunnel: Tunnel;
  readonly base: BaseAddress;
  /** The base sends its heartbeat with this text for a payload. */
  beat(payload: string): Promise<void>;
  /** The heartbeat of `base` as the transport wraps it. */
  heartPayload(): string;
  /** What the base answers from now on to a command: arklet's data. */
  answer(command: string, data: unknown): void;
  /** The next command that the base has received. */
  received(): Promise<ReceivedCommand>;
  /** Whether the tunnel may command any base; true at first. */
  isOurs: boolean;
  /** How many operations may be under way before others wait. */
  readonly capacity: number;
  /** Installs that leave from now on stay under way. */
  stall(): Stall;
  /** Cuts the tunnel off its broker or network for good. */
  breakLink(): Promise<void>;
  close(): Promise<void>;
}

const BIZ = { name: 'biz1', version: '1.0.0' };

/** What every transport promises. */
export function describeTunnel(name: string, openWorld: () => Promise<TunnelWorld>): void {
  describe(`${name} keeps the promises of a tunnel`, () => {
    let world: TunnelWorld;
    let handler: RecordingHandler;
    let stop: AbortController;
    let running: Promise<void>;

    beforeEach(async () => {
      world = await openWorld();
      handler = new RecordingHandler();
      stop = new AbortController();
      running = world.tunnel.run(handler, stop.signal);
      await handler.first('linkUp');
    });

    afterEach(async () => {
      stop.abort();
      await running;
      await world.close();
    });

    it('tells of its link before anything else, and is up then', () => {
      expect(handler.calls[0]).toEqual({ on: 'linkUp', tunnel: world.tunnel.name });
      expect(world.tunnel.isUp()).toBe(true);
      expect(world.tunnel.downSince()).toBeUndefined();
    });

    it('hands over the heartbeat of a base', async () => {
      await world.beat(world.heartPayload());
      const [heartbeat] = await handler.first('heartbeat');
      expect(heartbeat?.envelope).toMatchObject({ tunnel: world.tunnel.name, identity: world.base.identity });
      expect(heartbeat?.base).toMatchObject(world.base);
    });

    it('tells a base that says it is going down from one that lives', async () => {
      await world.beat(world.heartPayload().replace(/"activated"/i, '"deactivated"'));
      const [last] = await handler.first('goingDown');
      expect(last?.envelope.identity).toBe(world.base.identity);
      expect(handler.calls.map(({ on }) => on)).toEqual(['linkUp', 'goingDown']);
    });

    it('goes on after payloads that nobody can read', async () => {
      for (const payload of ['', 'not json', '[]', 'null', '{"data":{"baseMetadata":7}}']) await world.beat(payload);
      await world.beat(world.heartPayload());
      await handler.first('heartbeat');
      expect(handler.calls.map(({ on }) => on)).toEqual(['linkUp', 'heartbeat']);
    });

    it('goes on after a handler that throws', async () => {
      handler.throwOn = ({ on }) => (on === 'heartbeat' ? new Error('handler fault') : undefined);
      await world.beat(world.heartPayload());
      await world.beat(world.heartPayload());
      expect(await handler.first('heartbeat', 2)).toHaveLength(2);
      expect(world.tunnel.isUp()).toBe(true);
    });

    it('installs a module and hands over how that ended', async () => {
      world.answer('installBiz', {
        code: 'SUCCESS',
        data: {
          code: 'SUCCESS',
          message: 'installed',
          bizInfos: [{ bizName: BIZ.name, bizVersion: BIZ.version, bizState: 'ACTIVATED' }],
        },
      });
      const spec = { ...BIZ, url: 'http://jars/biz1.jar', args: ['--a=1'], envs: { KEY: 'value' } };
      await world.tunnel.installModule(world.base, spec);
      const { command, body } = await world.received();
      expect(command).toBe('installBiz');
      expect(JSON.parse(body)).toEqual({
        bizName: 'biz1',
        bizVersion: '1.0.0',
        bizUrl: 'http://jars/biz1.jar',
        args: ['--a=1'],
        envs: { KEY: 'value' },
      });
      const [ended] = await handler.first('operationResult');
      expect(ended?.result).toEqual({
        command: 'install',
        module: BIZ,
        outcome: 'done',
        code: 'SUCCESS',
        message: 'installed',
        state: 'ACTIVATED',
      });
    });

    it('leaves args and envs out of an install that has none', async () => {
      await world.tunnel.installModule(world.base, { ...BIZ, url: 'file:///a.jar', args: [], envs: {} });
      const { body } = await world.received();
      expect(body).toBe('{"bizName":"biz1","bizVersion":"1.0.0","bizUrl":"file:///a.jar"}');
    });

    it('uninstalls a module and hands over how that ended', async () => {
      world.answer('uninstallBiz', { code: 'FAILED', data: { code: 'NOT_FOUND_BIZ', message: 'not found' } });
      await world.tunnel.uninstallModule(world.base, BIZ);
      expect(await world.received()).toEqual({
        command: 'uninstallBiz',
        body: '{"bizName":"biz1","bizVersion":"1.0.0"}',
      });
      const [ended] = await handler.first('operationResult');
      expect(ended?.result).toMatchObject({ command: 'uninstall', module: BIZ, outcome: 'already' });
    });

    it('switches to another version where it can, and says so where it cannot', async () => {
      world.answer('switchBiz', { code: 'SUCCESS' });
      const switched = world.tunnel.switchModule(world.base, BIZ);
      if (!world.tunnel.canSwitch) {
        await expect(switched).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });
        return;
      }
      await switched;
      expect(await world.received()).toEqual({ command: 'switchBiz', body: '{"bizName":"biz1","bizVersion":"1.0.0"}' });
      const [ended] = await handler.first('operationResult');
      expect(ended?.result).toMatchObject({ command: 'switch', module: BIZ, outcome: 'done', state: undefined });
    });

    it('asks for the module list and hands it over', async () => {
      world.answer('queryAllBiz', [{ bizName: BIZ.name, bizVersion: BIZ.version, bizState: 'activated' }]);
      await world.tunnel.queryModules(world.base);
      expect(await world.received()).toEqual({ command: 'queryAllBiz', body: '{}' });
      const [list] = await handler.first('moduleList');
      expect(list?.modules).toEqual([{ ...BIZ, state: 'ACTIVATED' }]);
    });

    it('asks for the health and hands it over', async () => {
      const jvm = { 'java used metaspace': 5, 'java max metaspace': -1, 'run time(s)': 1.5 };
      world.answer('health', { code: 'SUCCESS', data: { healthData: { jvm } } });
      await world.tunnel.queryHealth(world.base);
      expect(await world.received()).toEqual({ command: 'health', body: '{}' });
      const [health] = await handler.first('health');
      expect(health?.health).toEqual({
        metaspaceUsedBytes: 5,
        metaspaceCommittedBytes: undefined,
        metaspaceMaxBytes: undefined,
        runTimeSeconds: 1.5,
        javaVersion: undefined,
      });
    });

    it('proves its link, several times at once', async () => {
      const probes = Array.from({ length: 5 }, () => world.tunnel.probeLink(5_000));
      // Over HTTP only a base can prove it.
      await world.beat(world.heartPayload());
      expect(await Promise.all(probes)).toEqual([true, true, true, true, true]);
    });

    it('closes everything when it is aborted', async () => {
      stop.abort();
      await running;
      expect(world.tunnel.isUp()).toBe(false);
      expect(world.tunnel.downSince()).toBeTypeOf('number');
      expect(await world.tunnel.probeLink(5_000)).toBe(false);
      await expect(world.tunnel.queryHealth(world.base)).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });
    });

    const installOf = (index: number) => ({
      name: `biz${index}`,
      version: '1',
      url: 'file:///a.jar',
      args: [],
      envs: {},
    });

    /** As many installs as can be under way, and an uninstall that waits for one of them. */
    async function fillUp() {
      const { tunnel, base, capacity } = world;
      const stall = world.stall();
      const codeOf = (sent: Promise<void>): Promise<unknown> => sent.then(() => 'sent').catch(({ code }) => code);
      const installs = Array.from({ length: capacity }, (_, index) =>
        codeOf(tunnel.installModule(base, installOf(index))),
      );
      await stall.left(capacity);
      return { stall, installs: Promise.all(installs), waiting: tunnel.uninstallModule(base, BIZ) };
    }

    /** What the base has received, up to a question that it is asked now. */
    async function receivedBeforeQuestion(): Promise<string[]> {
      await world.tunnel.queryHealth(world.base);
      const commands: string[] = [];
      for (;;) {
        const { command } = await world.received();
        if (command === 'health') return commands;
        commands.push(command);
      }
    }

    const NOT_ALLOWED = {
      code: 'Tunnel.NotConnected',
      message: 'command not sent: another replica may lead the base',
    };

    it('sends nothing, no question either, to a base that it may not command', async () => {
      world.isOurs = false;
      const { tunnel, base } = world;
      for (const sent of [
        tunnel.installModule(base, installOf(1)),
        tunnel.queryHealth(base),
        tunnel.queryModules(base),
      ]) {
        await expect(sent).rejects.toMatchObject(NOT_ALLOWED);
      }
      world.isOurs = true;
      expect(await receivedBeforeQuestion()).toEqual([]);
    });

    it('does not send a command that has waited when it may no longer', async () => {
      const { stall, installs, waiting } = await fillUp();
      const refused = expect(waiting).rejects.toMatchObject(NOT_ALLOWED);
      world.isOurs = false;
      stall.end();
      await refused;
      expect(await installs).toEqual(Array(world.capacity).fill('sent'));
      world.isOurs = true;
      expect(await receivedBeforeQuestion()).toEqual(Array(world.capacity).fill('installBiz'));
    });

    it('proves its link though it may command no base', async () => {
      world.isOurs = false;
      const probe = world.tunnel.probeLink(5_000);
      await world.beat(world.heartPayload());
      expect(await probe).toBe(true);
    });

    it('ends at once what is under way when it is abandoned, sends nothing of what waits, and works again', async () => {
      const { stall, installs, waiting } = await fillUp();
      const refused = expect(waiting).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });
      world.tunnel.abandon();
      await refused;
      expect(await installs).toEqual(Array(world.capacity).fill('Tunnel.SendFailed'));
      stall.end();
      if (!world.tunnel.isUp()) await handler.first('linkUp', 2);
      expect(await receivedBeforeQuestion()).not.toContain('uninstallBiz');
    });

    it('refuses commands without a link', async () => {
      await world.breakLink();
      const refusal = { code: expect.stringMatching(/^Tunnel\.(NotConnected|SendFailed)$/) };
      await expect(world.tunnel.queryHealth(world.base)).rejects.toMatchObject(refusal);
    });
  });
}
