import { posix } from 'node:path';
import { readText } from '../unit/docs/sources.ts';

export interface Walk {
  readonly title: string;
  readonly files: readonly { readonly path: string; readonly isStarred: boolean }[];
}

export const TUNNEL_FOLDERS = ['mqtt', 'http'] as const;
export type TunnelFolder = (typeof TUNNEL_FOLDERS)[number];

/** The diagrams of docs/contribute.md that show which files an event goes through. */
export function walks(): Walk[] {
  const [, section = ''] = readText('docs/contribute.md').split(
    /^## (?:How a Pod event and a heartbeat travel|Folders)$/m,
  );
  const diagrams = [...section.matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  const parts = diagrams.flatMap((text) => text.split(/^(?=[A-Z])/m)).filter((part) => part.trim() !== '');
  return parts.map((part) => ({ title: part.slice(0, part.indexOf('\n')), files: filesOf(part) }));
}

/** A path without a folder is in the folder of the path before it. */
function filesOf(text: string): Walk['files'] {
  let folder = '';
  return [...text.matchAll(/([\w./-]+\.ts)( \*)?/g)].map(([, path = '', star]) => {
    if (path.includes('/')) folder = posix.dirname(path);
    return { path: posix.join(folder, posix.basename(path)), isStarred: star !== undefined };
  });
}

/** The stateful files of a walk over one tunnel. */
export function statefulFilesOf({ files }: Walk, tunnel: TunnelFolder): string[] {
  const other = tunnel === 'mqtt' ? 'tunnels/http/' : 'tunnels/mqtt/';
  return files.filter(({ path, isStarred }) => isStarred && !path.startsWith(other)).map(({ path }) => path);
}
