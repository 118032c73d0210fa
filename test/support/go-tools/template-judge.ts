import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, constants, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cacheRootOf, fillDirectory } from '../../../samples/cache/fill-directory.ts';
import { buildWithGo } from './build.ts';

export interface JudgeRequest {
  readonly name: string;
  readonly template: string;
  readonly data: unknown;
}

/** What Go makes of a template: the text in bytes, or the step that failed. */
export type Verdict =
  | { readonly text: Buffer; readonly failed?: undefined }
  | { readonly failed: 'parse' | 'execution' | 'data'; readonly message: string };

const MAX_ANSWER_MS = 60_000;
const FOLDER = fileURLToPath(new URL('./template-judge', import.meta.url));
const SOURCES = ['go.mod', 'go.sum', 'main.go', 'tables.go'];

/** The path of the judge; builds it with Go, once for its sources on a machine. */
export async function ensureTemplateJudge(
  onProgress: (line: string) => void = (line) => console.error(line),
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const hash = createHash('sha256');
  for (const source of SOURCES) hash.update(await readFile(join(FOLDER, source)));
  const version = hash.digest('hex').slice(0, 16);
  const directory = join(cacheRootOf(env), 'template-judge', `${version}-${process.platform}-${process.arch}`);
  const program = join(directory, 'template-judge');
  const isComplete = () => isProgram(program);
  if (await isComplete()) return program;
  await fillDirectory({ directory, isComplete, what: 'builds the template judge', onProgress }, (workDirectory) =>
    buildWithGo({
      what: 'the template judge',
      minutes: 1,
      directory: FOLDER,
      flags: ['-ldflags=-s -w'],
      packages: ['.'],
      into: workDirectory,
      otherwise: 'leave out the tests of templates',
      onProgress,
    }),
  );
  return program;
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A running judge. It answers in the order of the questions. */
export class TemplateJudge {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting: ((line: string | undefined) => void)[] = [];

  private constructor(program: string) {
    this.#process = spawn(program, { stdio: 'pipe' });
    this.#process.stderr.pipe(process.stderr);
    const lines = createInterface(this.#process.stdout);
    lines.on('line', (line) => this.#waiting.shift()?.(line));
    lines.on('close', () => {
      for (const answer of this.#waiting.splice(0)) answer(undefined);
    });
  }

  static async start(): Promise<TemplateJudge> {
    return new TemplateJudge(await ensureTemplateJudge());
  }

  async ask({ name, template, data }: JudgeRequest): Promise<Verdict> {
    // A template that takes so long would have exceeded the limits: the process ends with it.
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), MAX_ANSWER_MS);
    const line = await new Promise<string | undefined>((resolve) => {
      this.#waiting.push(resolve);
      this.#process.stdin.write(`${JSON.stringify({ name, template, data })}\n`);
    });
    clearTimeout(timer);
    if (line === undefined) throw new Error(`no answer of the judge to ${JSON.stringify(template)}`);
    const { text, failed, message } = JSON.parse(line);
    return failed === undefined ? { text: Buffer.from(text ?? '', 'base64') } : { failed, message };
  }

  stop(): void {
    this.#process.stdin.end();
  }
}
