import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheRootOf, fillDirectory } from '../../../samples/cache/fill-directory.ts';
import { buildWithGo } from './build.ts';

interface GoTool {
  /** `go.mod` in this folder pins it, with all that it is built from; a unit test compares them. */
  readonly folder: string;
  readonly version: string;
  readonly package: string;
  /** Only `npm run test:long` needs it. */
  readonly isForLongTests?: boolean;
  /** Of the go command. */
  readonly tags?: string;
  /** What the program is asked for its version. */
  readonly versionArgs: readonly string[];
  /** A user's own program of the kind. */
  readonly variable: string;
}

const PROMETHEUS = {
  folder: 'prometheus',
  version: 'v0.313.2',
  // Without the clients of all clouds: half of the build.
  tags: 'remove_all_sd',
  versionArgs: ['--version'],
} as const;

export const GO_TOOLS = {
  helm: {
    folder: 'helm',
    version: 'v3.20.2',
    package: 'helm.sh/helm/v3/cmd/helm',
    versionArgs: ['version', '--short'],
    variable: 'HELM_BIN',
  },
  promtool: {
    ...PROMETHEUS,
    package: 'github.com/prometheus/prometheus/cmd/promtool',
    variable: 'PROMTOOL_BIN',
  },
  prometheus: {
    ...PROMETHEUS,
    package: 'github.com/prometheus/prometheus/cmd/prometheus',
    variable: 'PROMETHEUS_BIN',
    isForLongTests: true,
  },
} as const satisfies Record<string, GoTool>;

export type GoToolName = keyof typeof GO_TOOLS;
/** The first build on a machine; everything after it takes no time. */
export const BUILD_TIMEOUT_MS = 1_200_000;

/** The path of a program; builds it with Go, once for a machine. */
export async function ensureGoTool(
  name: GoToolName,
  onProgress: (line: string) => void = (line) => console.error(line),
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const tool: GoTool = GO_TOOLS[name];
  const own = env[tool.variable];
  if (own) {
    if (!(await isProgram(own))) throw new Error(`${tool.variable}=${own} is no program`);
    return own;
  }
  const directory = join(cacheRootOf(env), name, `${tool.version}-${process.platform}-${process.arch}`);
  const program = join(directory, name);
  const isComplete = () => isProgram(program);
  if (await isComplete()) return program;
  await fillDirectory({ directory, isComplete, what: `builds ${name}`, onProgress }, async (workDirectory) => {
    await buildWithGo({
      what: `${name} ${tool.version}`,
      minutes: 2,
      directory: fileURLToPath(new URL(`./${tool.folder}`, import.meta.url)),
      flags: [`-ldflags=${linkerFlags(tool)}`, `-tags=${tool.tags ?? ''}`],
      packages: [tool.package],
      into: workDirectory,
      otherwise: `set ${tool.variable} to a ${name} of yours`,
      onProgress,
    });
    // That it runs at all: it was built for this machine.
    await promisify(execFile)(join(workDirectory, name), [...tool.versionArgs]);
  });
  return program;
}

function linkerFlags({ version }: GoTool): string {
  return `-s -w -X helm.sh/helm/v3/internal/version.version=${version}`;
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
