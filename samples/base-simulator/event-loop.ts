/** One thread of the agent's HTTP server: does one thing at a time, in the order in which they came. */
export class EventLoop {
  #last: Promise<void> = Promise.resolve();

  /** `task` never rejects; as long as it takes, all that comes after it waits. */
  run(task: () => void | Promise<void>): void {
    this.#last = this.#last.then(task);
  }
}
