import { loadControllers, REGISTRY } from '../../src/assembly/registry.ts';

/** All controllers of this program, the Virtual Kubelet first. */
export const DEFINITIONS = await loadControllers(REGISTRY, [...REGISTRY.keys()]);

export const CORE_NAME = 'vk';

/** Those that run beside the core. */
export const PLATFORM = DEFINITIONS.filter(({ name }) => name !== CORE_NAME);
