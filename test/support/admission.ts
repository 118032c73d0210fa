import { expect } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { messageOf } from '../../src/errors.ts';
import { eventually } from './eventually.ts';
import type { World } from './world.ts';

/** Why the API server refuses an object; `accepted`, and it is stored, when it does not. */
export function refusal({ controlPlane }: World, object: object): Promise<string> {
  return answerOf(controlPlane.apply(object as KubeObject));
}

/** Resolves when the API server asks the webhook about exported Services, and trusts its certificate. */
export async function untilAsked({ admin }: World): Promise<void> {
  const wrong = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'probe', namespace: 'default', labels: { BCSGROUP: 'external', BCSBALANCE: 'wrong' } },
    spec: { selector: { app: 'probe' }, ports: [{ port: 1 }] },
  };
  const path = '/api/v1/namespaces/default/services?dryRun=All';
  await eventually(async () => expect(await answerOf(admin.post(path, wrong as KubeObject))).toContain('BCSBALANCE'));
}

function answerOf(write: Promise<unknown>): Promise<string> {
  return write.then(() => 'accepted', messageOf);
}
