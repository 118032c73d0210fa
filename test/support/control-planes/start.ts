import { readFile } from 'node:fs/promises';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../../samples/control-plane/control-plane.ts';

const DEPLOY = new URL('../../../deploy/', import.meta.url);

const FILES = ['namespace.yaml', 'rbac.yaml', 'confinement.yaml'];

/**
 * A policy about nothing with Deployments as parameters. Without the last such policy an API server (1.30 to 1.35) stops
 * its watch of them for good, and the next one would know only the Deployments of former files.
 */
const KEEPS_DEPLOYMENTS_WATCHED = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: keeps-deployments-watched }
spec:
  paramKind: { apiVersion: apps/v1, kind: Deployment }
  matchConstraints:
    resourceRules:
      - { apiGroups: [test.example.com], apiVersions: [v1], resources: [nothing], operations: [CREATE] }
  validations: [{ expression: "true" }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: keeps-deployments-watched }
spec:
  policyName: keeps-deployments-watched
  paramRef: { selector: {}, parameterNotFoundAction: Allow }
  validationActions: [Audit]
`;

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
    await controlPlane.apply(KEEPS_DEPLOYMENTS_WATCHED);
    return controlPlane;
  } catch (error) {
    await controlPlane.stop();
    throw error;
  }
}
