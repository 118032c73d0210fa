import type { Calls, Reply, Request } from './remote.ts';

/** The other end of `forkRemote`: answers its calls, and ends this process when nobody is left to ask. */
export function serveCalls<C extends Calls<C>>(calls: C): void {
  process.on('message', ({ id, call, args }: Request) => {
    const reply = (rest: Omit<Reply, 'id'>): unknown => process.send?.({ id, ...rest } satisfies Reply);
    perform(calls, call, args).then(
      (result) => reply({ result }),
      (error) => reply({ error: textOf(error) }),
    );
  });
  process.once('disconnect', () => process.exit());
}

async function perform<C extends Calls<C>>(calls: C, call: string, args: readonly unknown[]): Promise<unknown> {
  if (!Object.hasOwn(calls, call)) throw new Error(`call: this process knows no call ${call}`);
  // JSON on its way turns undefined into null.
  return calls[call as keyof C](...args.map((argument) => argument ?? undefined));
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
