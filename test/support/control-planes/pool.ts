import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';
import { MANY_PODS } from '../cluster-settings.ts';
import { Pristine } from './pristine.ts';
import { startDeployedControlPlane } from './start.ts';

/** One that nobody wants for so long goes: at rest it costs CPU time too. */
const IDLE_MS = 20_000;

interface Kept {
  readonly controlPlane: ControlPlane;
  readonly pristine: Pristine;
  idle?: NodeJS.Timeout;
}

/** Control planes with `deploy/` applied, for one test file after the other: each finds only what `deploy/` makes. */
export class ControlPlanePool {
  /** The one that came back last is lent first, so that the others can go. */
  readonly #free: Kept[] = [];
  readonly #all = new Set<Kept>();
  readonly #warn: (message: string) => void;

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  /** `release` may be called once; it never rejects. */
  async lend(): Promise<{ controlPlane: ControlPlane; release: () => Promise<void> }> {
    const kept = this.#free.pop() ?? (await this.#start());
    clearTimeout(kept.idle);
    return { controlPlane: kept.controlPlane, release: () => this.#takeBack(kept) };
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#all].map((kept) => this.#end(kept)));
  }

  async #start(): Promise<Kept> {
    const controlPlane = await startDeployedControlPlane(MANY_PODS);
    try {
      const kept = { controlPlane, pristine: await Pristine.of(controlPlane.admin) };
      this.#all.add(kept);
      return kept;
    } catch (error) {
      await controlPlane.stop();
      throw error;
    }
  }

  /** One that cannot be made as it was goes: what a file has done to it is no matter of the next. */
  async #takeBack(kept: Kept): Promise<void> {
    const isRestored = await kept.pristine.restore().catch((error: unknown) => {
      if (this.#all.has(kept)) this.#warn(`a control plane is thrown away: ${error}`);
      return false;
    });
    if (!isRestored) await this.#end(kept);
    if (!this.#all.has(kept)) return;
    this.#free.push(kept);
    kept.idle = setTimeout(() => void this.#end(kept), IDLE_MS);
  }

  async #end(kept: Kept): Promise<void> {
    clearTimeout(kept.idle);
    this.#all.delete(kept);
    const index = this.#free.indexOf(kept);
    if (index >= 0) this.#free.splice(index, 1);
    await kept.controlPlane.stop();
  }
}
