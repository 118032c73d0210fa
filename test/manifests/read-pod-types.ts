/** `npm run pod-types`: writes {@link POD_TYPES} from what the pinned API server serves. */
import { writeFileSync } from 'node:fs';
import { startControlPlane } from '../../samples/control-plane/control-plane.ts';
import { podTypesOf, podTypesText } from './pod-types.ts';

const POD_TYPES = new URL('../../src/kinds/pod-types.json', import.meta.url);

const controlPlane = await startControlPlane({ onProgress: (line) => console.error(line) });
try {
  const document = await controlPlane.admin.get('/openapi/v3/apis/apps/v1');
  writeFileSync(POD_TYPES, podTypesText(podTypesOf(document)));
  console.log('src/kinds/pod-types.json');
} finally {
  await controlPlane.stop();
}
