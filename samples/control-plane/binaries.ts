import { join } from 'node:path';
import { cacheRootOf } from '../cache/fill-directory.ts';
import { archivesFor } from './archives.ts';
import { buildIntoCache } from './build-source.ts';
import { downloadIntoCache } from './download-source.ts';
import { hasAllPrograms, missingPrograms } from './programs.ts';
import { ETCD_VERSION, KUBERNETES_VERSION } from './versions.ts';

/** A place that the programs may come from. */
export interface BinarySource {
  name: string;
  /** A directory with all programs; undefined when this source has none, so that the next one is asked. */
  tryGet(): Promise<string | undefined>;
  /** An error is told, and the next source is asked. Default: the error ends the search. */
  mayFail?: boolean;
}

export interface BinaryOptions {
  /** Gets a line at each step, and each few seconds of a download or a build. Default: nobody. */
  onProgress?: (line: string) => void;
}

/** The directory that holds all four programs; downloads or builds them if there are none yet. */
export async function ensureBinaries({ onProgress = () => {} }: BinaryOptions = {}): Promise<string> {
  return firstOf(binarySources(process.env, onProgress), onProgress);
}

/** In the order in which they are asked. */
function binarySources(env: NodeJS.ProcessEnv, onProgress: (line: string) => void): BinarySource[] {
  const cacheDirectory = cacheDirectoryOf(env);
  const fill = async (filling: Promise<void>) => {
    await filling;
    return cacheDirectory;
  };
  const download = async () => {
    const archives = archivesFor({ platform: process.platform, arch: process.arch });
    await downloadIntoCache({ cacheDirectory, archives, mirror: env.CONTROL_PLANE_MIRROR, onProgress });
  };
  return [
    { name: 'CONTROL_PLANE_BIN_DIR', tryGet: () => fromDirectory(env.CONTROL_PLANE_BIN_DIR) },
    { name: 'cache', tryGet: async () => ((await hasAllPrograms(cacheDirectory)) ? cacheDirectory : undefined) },
    { name: 'download', mayFail: true, tryGet: () => fill(download()) },
    { name: 'build', mayFail: true, tryGet: () => fill(buildIntoCache({ cacheDirectory, onProgress })) },
  ];
}

/** Throws when none has the programs, with what each one that failed has said. */
export async function firstOf(sources: BinarySource[], onProgress: (line: string) => void = () => {}): Promise<string> {
  const failures: string[] = [];
  for (const source of sources) {
    try {
      const directory = await source.tryGet();
      if (directory !== undefined) return directory;
    } catch (error) {
      if (!source.mayFail) throw error;
      const failure = `${source.name} failed: ${error instanceof Error ? error.message : error}`;
      onProgress(failure);
      failures.push(failure);
    }
  }
  const names = sources.map((source) => source.name).join(', ');
  throw new Error([`no control plane binaries from any of: ${names}`, ...failures].join('\n'));
}

/** One directory a version, so that an update never meets the programs of another one. */
export function cacheDirectoryOf(env: NodeJS.ProcessEnv): string {
  const version = `${KUBERNETES_VERSION}-etcd${ETCD_VERSION}-${process.platform}-${process.arch}`;
  return join(cacheRootOf(env), 'control-plane', version);
}

/** A directory that the user named must be right: falling back to a build would hide a typing error. */
async function fromDirectory(directory: string | undefined): Promise<string | undefined> {
  if (!directory) return undefined;
  const missing = await missingPrograms(directory);
  if (missing.length > 0) throw new Error(`CONTROL_PLANE_BIN_DIR=${directory} has no executable ${missing.join(', ')}`);
  return directory;
}
