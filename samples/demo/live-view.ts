import type { Screen } from './screen.ts';
import type { Stage } from './stage.ts';
import { changesBetween, renderTable } from './table.ts';

/** Changes come in bursts; the eye needs no more than this. */
const DRAW_EVERY_MS = 100;

/** Shows Nodes and vPods as they change: a table on a terminal, else a line for each change. */
export class LiveView {
  readonly #stage: Stage;
  readonly #screen: Screen;
  readonly #startedAt = performance.now();
  readonly #stopListening: () => void;
  #shown;
  #timer: NodeJS.Timeout | undefined;

  constructor(stage: Stage, screen: Screen) {
    this.#stage = stage;
    this.#screen = screen;
    this.#shown = stage.cluster();
    this.#stopListening = stage.onChange(() => {
      this.#timer ??= setTimeout(() => this.draw(), DRAW_EVERY_MS);
    });
  }

  /** Shows what is there now, without waiting for the rest of a burst. */
  draw(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const view = this.#stage.cluster();
    if (this.#screen.isLive) this.#screen.show(renderTable(view, this.#screen));
    else for (const change of changesBetween(this.#shown, view)) this.#screen.print(`  ${this.#elapsed()}  ${change}`);
    this.#shown = view;
  }

  /** What is shown stays. */
  stop(): void {
    this.#stopListening();
    clearTimeout(this.#timer);
  }

  #elapsed(): string {
    return `${((performance.now() - this.#startedAt) / 1000).toFixed(1).padStart(6)} s`;
  }
}
