import { readFile } from 'node:fs/promises';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../../samples/control-plane/control-plane.ts';

const DEPLOY = new URL('../../../deploy/', import.meta.url);

/** A control plane with the namespace, the rights and the confinement of `deploy/`. */
export async function startDeployedControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const controlPlane = await startControlPlane(options);
  try {
    for (const file of ['namespace.yaml', 'rbac.yaml', 'confinement.yaml']) {
      await controlPlane.apply(await readFile(new URL(file, DEPLOY), 'utf8'));
    }
    return controlPlane;
  } catch (error) {
    await controlPlane.stop();
    throw error;
  }
}
