import { inject } from 'vitest';
import { BorrowedControlPlane } from './control-planes/loans.ts';
import { transportOf, World, type WorldOptions } from './world.ts';

/** On a control plane that other test files have used before and others will use; `deploy/` is applied. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const transport = await transportOf(options);
  const controlPlane = await BorrowedControlPlane.at(inject('controlPlanes'));
  return new World({ controlPlane, transport, env: options.env ?? 'dev' });
}
