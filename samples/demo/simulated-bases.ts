import { type Fleet, startFleet } from '../base-simulator/fleet.ts';
import type { BaseLinks, Cast } from './cast.ts';
import { nodeFaults } from './checks.ts';
import type { Break } from './options.ts';
import { ENV } from './stage.ts';
import { type Step, untilFaultless } from './step.ts';

const BASES = { mqtt: 3, http: 2 } as const;
export const BASE_COUNT = BASES.mqtt + BASES.http;
const INSTALL_MS = 800;

export function simulatedBasesStep(broken: Break | undefined): Step {
  return {
    name: `${BASE_COUNT} bases become Ready Nodes: ${BASES.mqtt} over MQTT, ${BASES.http} over HTTP`,
    run: async (context) => {
      const { stage } = context;
      await stage.startBases((links) => prepareBases(links, broken));
      await untilFaultless(context, () => nodeFaults(stage.cluster(), stage.bases(), ENV));
    },
  };
}

async function prepareBases(links: BaseLinks, broken: Break | undefined): Promise<Cast> {
  const { brokerUrl, controllerUrl, env, token, onChange } = links;
  const fleet = await startFleet({
    brokerUrl,
    env,
    count: BASES.mqtt,
    // Without the property the controller switches versions itself, which it can over HTTP.
    bases: Array.from({ length: BASES.http }, () => ({ controllerUrl, activateNewModule: false })),
    token,
    installMs: INSTALL_MS,
    // As with the JVM property: else a base keeps the old version active, and an update on it does not go on.
    activateNewModule: true,
    announce: false,
  });
  fleet.history.subscribe(onChange);
  if (broken === 'silence-base') fleet.bases.at(-1)?.silence();
  if (broken === 'refuse-jar') {
    fleet.setFault({ command: 'installBiz', failure: 'java.util.zip.ZipException: zip END header not found' });
  }
  return { start: async () => fleet.announce(), bases: () => viewsOf(fleet), stop: () => fleet.stop() };
}

function viewsOf(fleet: Fleet) {
  return fleet.bases.map((base) => ({
    identity: base.identity,
    tunnel: base.tunnel,
    // The controller gives no Node an address that only the machine itself can reach.
    ip: base.localIP.startsWith('127.') ? '' : base.localIP,
    modules: base.modules().map((module) => `${module.bizName}:${module.bizVersion} ${module.state}`),
  }));
}
