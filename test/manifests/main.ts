import { writeFileSync } from 'node:fs';
import { generatedManifests } from './manifests.ts';

for (const [path, text] of Object.entries(generatedManifests())) {
  writeFileSync(new URL(`../../${path}`, import.meta.url), text);
  console.log(path);
}
