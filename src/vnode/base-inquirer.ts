import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Leadership } from '../leadership.ts';
import type { Logger } from '../logger.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { ANSWER_WITHIN_MS } from './liveness.ts';
import type { VNode } from './vnode.ts';

export interface BaseInquirerOptions {
  readonly tunnels: Tunnels;
  readonly leadership: Pick<Leadership, 'isFollowed'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Asks the bases of Nodes that no other replica may lead for their list and health. Answers come to the VNodeController
 * like any other message.
 */
export class BaseInquirer {
  readonly #leadership: Pick<Leadership, 'isFollowed'>;
  readonly #tunnels: Tunnels;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(options: BaseInquirerOptions) {
    this.#leadership = options.leadership;
    this.#tunnels = options.tunnels;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** Asks a base for everything that it reports. */
  ask(vnode: VNode): void {
    if (this.#leadership.isFollowed(vnode.nodeName)) {
      // Perhaps for a moment only, while its Lease is in doubt: then nothing else would ask soon.
      vnode.questions.refreshBy(this.#clock.now());
      return;
    }
    vnode.questions.refreshAsked(this.#clock.now());
    this.askList(vnode);
    this.askHealth(vnode);
  }

  /**
   * Asks for everything: now, or 5 s after its last question, which it may have answered before there was this reason.
   */
  askSoon(vnode: VNode): void {
    if (this.#clock.now() >= freeAtOf(vnode)) this.ask(vnode);
    else vnode.questions.refreshBy(freeAtOf(vnode));
  }

  askList(vnode: VNode): void {
    if (this.#leadership.isFollowed(vnode.nodeName)) return;
    vnode.ledger.listAsked(this.#clock.now());
    vnode.questions.lists.asked();
    this.#send(vnode, 'queryModules');
  }

  askHealth(vnode: VNode): void {
    if (this.#leadership.isFollowed(vnode.nodeName)) return;
    this.noteHealthAsked(vnode, this.#clock.now());
    this.#send(vnode, 'queryHealth');
  }

  /** Its health was asked for before it became a VNode. */
  noteHealthAsked(vnode: VNode, now: number): void {
    vnode.questions.healthAsked(now);
  }

  /** Asks as `askSoon` does, for the health alone. */
  askHealthSoon(vnode: VNode): void {
    if (this.#clock.now() >= freeAtOf(vnode)) this.askHealth(vnode);
    else vnode.questions.postponeHealth(freeAtOf(vnode));
  }

  /**
   * Nothing is lost with a question that cannot be sent: all bases are asked when the link is up again and at intervals,
   * and sooner where a plan waits for a list.
   */
  #send(vnode: VNode, question: 'queryModules' | 'queryHealth'): void {
    const { place } = vnode;
    const tunnel = this.#tunnels.get(place.tunnel);
    if (place.isDisplaced || tunnel === undefined) return;
    tunnel[question](place.base).catch((error: unknown) => {
      this.#logger.debug({ node: vnode.nodeName, question, reason: messageOf(error) }, 'base could not be asked');
    });
  }
}

function freeAtOf({ questions }: VNode): number {
  return questions.healthAskedAt + ANSWER_WITHIN_MS;
}
