import { ensureGoTool, GO_TOOLS, type GoToolName } from './programs.ts';
import { ensureTemplateJudge } from './template-judge.ts';

/** Builds what the tests of the manifests run, so that no test's time limit has to hold that. */
for (const name of Object.keys(GO_TOOLS) as GoToolName[]) {
  if (!('isForLongTests' in GO_TOOLS[name])) console.log(await ensureGoTool(name));
}
console.log(await ensureTemplateJudge());
