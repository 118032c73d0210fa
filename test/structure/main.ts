/** `npm run structure`: facts about the sources. `test/unit/docs/structure.test.ts` checks the same. */
import { readSource, sourceFilesOf } from '../unit/docs/sources.ts';
import { importCircles, importCounts, importsUp } from './imports.ts';
import { stateOf } from './state.ts';
import { changedInPlace, vnodeGroups } from './vnode-groups.ts';
import { statefulFilesOf, TUNNEL_FOLDERS, walks } from './walks.ts';

const files = sourceFilesOf('src', 'tunnels');

const { values, types } = importCounts(files);
console.log(`${files.length} files, ${values} imports of values, ${types} imports of types only`);
list('files in import circles', importCircles(files));
list('imports that no arrow allows', importsUp(files));

for (const walk of walks()) {
  const counts = TUNNEL_FOLDERS.map((tunnel) => `${tunnel} ${statefulFilesOf(walk, tunnel).length}`);
  const stateful = walk.files.filter(({ isStarred }) => isStarred);
  list(
    `${walk.title}: stateful files (${counts.join(', ')})`,
    stateful.map(({ path }) => `${path}: ${stateOf(readSource(path)).join(', ')}`),
  );
}

for (const { field, type, state, callers } of vnodeGroups()) {
  const rows = [...callers].map(([method, paths]) => `${method}: ${paths.join(', ')}`);
  list(`${type}${field === '' ? '' : ` (vnode.${field})`}: ${state.join(', ')}`, rows);
}
list(
  'changed in place',
  [...changedInPlace()].map(([name, paths]) => `${name}: ${paths.join(', ')}`),
);

function list(title: string, lines: readonly string[]): void {
  console.log(`\n${title}`);
  for (const line of lines.length === 0 ? ['none'] : lines) console.log(`  ${line}`);
}
