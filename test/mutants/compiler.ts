import { resolve } from 'node:path';
import type { SourceFile } from 'typescript/unstable/ast';
import { API, type Project, type Snapshot } from 'typescript/unstable/sync';

/**
 * The compiler of this repository as parser and judge of types, over files that may be replaced in memory.
 * The only user of the API of TypeScript 7, which its authors call unstable: its version is pinned.
 */
export class Compiler {
  readonly #config: string;
  readonly #replaced: Map<string, string>;
  readonly #api: API;
  #snapshot: Snapshot;

  /** @param files by absolute path; they take the place of files on the disk, or stand beside them */
  constructor(root: string, files: Readonly<Record<string, string>> = {}) {
    this.#config = resolve(root, 'tsconfig.json');
    this.#replaced = new Map(Object.entries(files));
    this.#api = new API({
      cwd: root,
      fs: {
        readFile: (path) => this.#replaced.get(path),
        fileExists: (path) => this.#replaced.has(path) || undefined,
      },
    });
    this.#snapshot = this.#api.updateSnapshot({ openProjects: [this.#config] });
  }

  parse(path: string): SourceFile {
    const file = this.#project.program.getSourceFile(path);
    if (file === undefined) throw new Error(`${path} is not part of ${this.#config}`);
    return file;
  }

  /** Whether the file itself would have no error with this text. Users of the file are not checked. */
  accepts(path: string, text: string): boolean {
    const before = this.#replaced.get(path);
    this.replace(path, text);
    const { program } = this.#project;
    const isAccepted = program.getSyntacticDiagnostics(path).length + program.getSemanticDiagnostics(path).length === 0;
    this.replace(path, before);
    return isAccepted;
  }

  /** @param text undefined: what is on the disk */
  replace(path: string, text: string | undefined): void {
    if (text === undefined) this.#replaced.delete(path);
    else this.#replaced.set(path, text);
    const former = this.#snapshot;
    this.#snapshot = this.#api.updateSnapshot({ fileChanges: { changed: [path] } });
    former.dispose();
  }

  close(): void {
    this.#api.close();
  }

  get #project(): Project {
    const project = this.#snapshot.getProject(this.#config);
    if (project === undefined) throw new Error(`${this.#config} cannot be opened`);
    return project;
  }
}
