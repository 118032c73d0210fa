import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { eventually } from './eventually.ts';
import type { World } from './world.ts';

/** Resolves when the API server asks the webhook about exported Services, and trusts its certificate. */
export async function isAskedOfWebhook(world: World): Promise<void> {
  const wrong = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'probe', namespace: 'default', labels: { BCSGROUP: 'external', BCSBALANCE: 'wrong' } },
    spec: { selector: { app: 'probe' }, ports: [{ port: 1 }] },
  };
  await eventually(async () => {
    let answer = 'accepted';
    try {
      await world.admin.post('/api/v1/namespaces/default/services?dryRun=All', wrong as KubeObject);
    } catch (error) {
      answer = messageOf(error);
    }
    if (!answer.includes('BCSBALANCE')) throw new Error(answer);
  });
}
