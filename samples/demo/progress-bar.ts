import type { ModuleDeploymentView } from './view.ts';

const BAR_WIDTH = 20;

/** How far a rollout is: a bar of the Pods that are of the newest template, and the counts of the status. */
export function progressBar(deployment: ModuleDeploymentView): string {
  const { wanted, updated, available, revision, reason, batch } = deployment;
  const share = wanted === 0 ? 1 : Math.min(1, updated / wanted);
  const filled = Math.floor(BAR_WIDTH * share);
  const parts = [
    `${updated} of ${wanted} updated`,
    `${available} available`,
    ...(batch === undefined ? [] : [`batch ${batch.current} of ${batch.total}`]),
    ...(reason === '' ? [] : [reason]),
  ];
  return `revision ${revision} ${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${parts.join(', ')}`;
}
