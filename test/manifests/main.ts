import { writeFileSync } from 'node:fs';
import { generatedManifests } from './manifests.ts';
import { renderedManifests } from './rendered.ts';

/** The chart's files come first: the others are made from them. */
for (const make of [generatedManifests, renderedManifests]) {
  for (const [path, text] of Object.entries(await make())) {
    writeFileSync(new URL(`../../${path}`, import.meta.url), text);
    console.log(path);
  }
}
