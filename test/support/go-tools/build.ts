import { everyFewSeconds } from '../../../samples/cache/progress.ts';
import { type GoOptions, runGo } from '../../../samples/control-plane/go.ts';

export interface GoBuild extends Pick<GoOptions, 'directory' | 'otherwise'> {
  /** Such as `kwok v0.7.0`. */
  readonly what: string;
  /** About how long it takes on two cores. */
  readonly minutes: number;
  /** Besides those that each build has. */
  readonly flags: readonly string[];
  readonly packages: readonly string[];
  /** Where the programs go. */
  readonly into: string;
  readonly onProgress: (line: string) => void;
}

/** Builds programs from the pinned modules of `directory`, and says every few seconds how far it is. */
export async function buildWithGo({ what, minutes, flags, packages, into, onProgress, ...go }: GoBuild): Promise<void> {
  onProgress(`building ${what} with Go, once for this machine: about ${minutes} minutes on 2 cores`);
  let compiled = 0;
  const report = everyFewSeconds(() => onProgress(`building ${what}: ${compiled} packages compiled`));
  const onErrorLine = (): void => {
    compiled += 1;
    report();
  };
  const args = ['build', '-v', '-trimpath', '-buildvcs=false', ...flags, '-o', `${into}/`, ...packages];
  await runGo(args, { ...go, onErrorLine });
}
