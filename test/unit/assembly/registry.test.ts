import { describe, expect, it } from 'vitest';
import { loadControllers, REGISTRY, type Registry } from '../../../src/assembly/registry.ts';

function registryOf(names: readonly string[]) {
  const loaded: string[] = [];
  const registry: Registry = new Map(
    names.map((name) => [
      name,
      async () => {
        loaded.push(name);
        return { name, summary: '', access: [], build: () => ({ groups: [] }) };
      },
    ]),
  );
  return { loaded, registry };
}

describe('the registry', () => {
  it('loads the controllers that are on, and nothing else', async () => {
    const { loaded, registry } = registryOf(['vk', 'rollout', 'export']);
    const modules = await loadControllers(registry, ['export', 'vk']);
    expect(modules.map(({ name }) => name)).toEqual(['vk', 'export']);
    expect(loaded).toEqual(['vk', 'export']);
  });

  it('has each controller under its own name', async () => {
    const names = [...REGISTRY.keys()];
    expect((await loadControllers(REGISTRY, names)).map(({ name }) => name)).toEqual(names);
  });
});
