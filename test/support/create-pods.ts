import type { ControlPlane } from '../../samples/control-plane/control-plane.ts';
import type { modulePod } from './manifests.ts';

const POSTS_AT_ONCE = 16;

/** Many Pods, as fast as the API server takes them; in no order. */
export async function createPods(
  admin: ControlPlane['admin'],
  pods: readonly ReturnType<typeof modulePod>[],
): Promise<void> {
  const wanted = [...pods];
  const post = async (): Promise<void> => {
    for (let pod = wanted.pop(); pod; pod = wanted.pop()) await admin.post('/api/v1/namespaces/default/pods', pod);
  };
  await Promise.all(Array.from({ length: POSTS_AT_ONCE }, post));
}
