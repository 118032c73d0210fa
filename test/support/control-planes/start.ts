import { readFile } from 'node:fs/promises';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../../samples/control-plane/control-plane.ts';

const DEPLOY = new URL('../../../deploy/', import.meta.url);

const FILES = ['namespace.yaml', 'rbac.yaml', 'confinement.yaml'];

/** A control plane with the namespace, the rights and the confinement of `deploy/`, and further files of it. */
export async function startDeployedControlPlane(
  options: ControlPlaneOptions,
  furtherFiles: readonly string[] = [],
): Promise<ControlPlane> {
  const controlPlane = await startControlPlane(options);
  try {
    for (const file of [...FILES, ...furtherFiles]) {
      await controlPlane.apply(await readFile(new URL(file, DEPLOY), 'utf8'));
    }
    return controlPlane;
  } catch (error) {
    await controlPlane.stop();
    throw error;
  }
}
