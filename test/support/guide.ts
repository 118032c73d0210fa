import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const ROOT = new URL('../../', import.meta.url);

/** The `sh` blocks of a section of a page, in order, without the indent that a list gives them. */
export function commandsOf(page: string, heading: string): string[] {
  const text = readFileSync(new URL(page, ROOT), 'utf8');
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${page} has no section "${heading}"`);
  const blocks = [...section.matchAll(/^( *)```sh\n([\s\S]*?)^ *```$/gm)];
  return blocks.map(([, indent = '', block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

/** Runs a block as somebody would who pastes it into a shell; rejects when a command of it fails. */
export async function runInShell(block: string, { kubeconfig }: { readonly kubeconfig: string }): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', block], {
    cwd: ROOT,
    // kubectl keeps what it finds out about the API server there.
    env: { PATH: process.env.PATH ?? '', KUBECONFIG: kubeconfig, KUBECACHEDIR: `${kubeconfig}.cache` },
  });
  return stdout;
}
