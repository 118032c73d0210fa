import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { COMPONENT_NAMES, type ComponentName } from './versions.ts';

export async function missingPrograms(directory: string): Promise<ComponentName[]> {
  const checks = COMPONENT_NAMES.map(async (name) => {
    const isThere = await access(join(directory, name), constants.X_OK).then(
      () => true,
      () => false,
    );
    return isThere ? [] : [name];
  });
  return (await Promise.all(checks)).flat();
}

export async function hasAllPrograms(directory: string): Promise<boolean> {
  return (await missingPrograms(directory)).length === 0;
}
