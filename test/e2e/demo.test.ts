import { describe, expect, it } from 'vitest';
import { Demo, leftoversOf } from '../support/demo-process.ts';
import { eventually } from '../support/eventually.ts';

const BASES_READY = '3 JVMs become Ready Nodes: 2 over HTTP, 1 over MQTT';

describe('npm run demo -- --java', () => {
  it('with --once sees every step succeed without a failed call, exits 0 and leaves nothing', async () => {
    const demo = new Demo('--java', '--once', '--step-timeout', '150');
    const directory = await demo.directory();
    expect(await demo.exited, demo.output).toBe(0);
    expect(demo.steps()).toEqual([
      'this machine has a JDK, Maven and an address',
      'control plane is up',
      'MQTT broker is up',
      'controller is ready',
      'the Java samples are built',
      BASES_READY,
      'Deployment shop 1.0.0, a web module, rolls out on 3 bases, and each serves it',
      'rolling update of shop to 2.0.0, and no call of a client fails meanwhile',
      'Deployment price 1.0.0, a module that java-1 itself calls',
      'rolling update of price to 2.0.0 on that one base, and no call fails meanwhile',
      'both Deployments are deleted, and no base serves the modules any more',
    ]);
    expect(demo.output.match(/client: \d+ calls, 0 failed$/gm)).toHaveLength(2);
    expect(demo.output.match(/java-\d answers 404 to/g)).toHaveLength(3);
    expect(await leftoversOf(directory)).toEqual([]);
  });

  it('with --rollout updates and rolls back in batches while every base is called, without a failed call', async () => {
    const demo = new Demo('--java', '--rollout', '--once', '--step-timeout', '150');
    const directory = await demo.directory();
    expect(await demo.exited, demo.output).toBe(0);
    expect(demo.steps()).toEqual([
      'this machine has a JDK, Maven and an address',
      'control plane is up',
      'MQTT broker is up',
      'controller is ready',
      'rollout controller is ready, and has installed its CRD',
      'the Java samples are built',
      BASES_READY,
      'ModuleDeployment price 1.0.0 rolls out on 3 bases',
      'update to 2.0.0: batch 1 of 2 replaces 2 Pods on their own bases, then the rollout waits',
      'batch 1 is confirmed, and batch 2 replaces the other Pods',
      'rollback to 1.0.0: batch 1 of 2 replaces 2 Pods, then the rollout waits',
      'batch 1 is confirmed, and all 3 Pods are of 1.0.0 again, on the bases where they began',
      'no call of the client failed, on any base, from the first version to the last',
      'ModuleDeployment price is deleted, and the module with it',
    ]);
    expect(demo.output).toMatch(/client: [1-9]\d* calls, 0 failed$/m);
    for (const base of ['java-1', 'java-2', 'java-3']) {
      const answers = demo.output.match(new RegExp(`(?<= ${base} answers ).+$`, 'gm'));
      expect(answers, base).toEqual(['1.0.0', '2.0.0', '1.0.0']);
    }
    expect(await leftoversOf(directory)).toEqual([]);
  });

  it('leaves no JVM when it is killed', async () => {
    const demo = new Demo('--java', '--once');
    const directory = await demo.directory();
    await demo.printed(new RegExp(`^✓ (${BASES_READY}) `, 'm'));
    expect((await leftoversOf(directory)).filter((line) => line.includes('BaseApplication'))).not.toEqual([]);
    demo.signal('SIGKILL');
    await demo.exited;
    await eventually(async () => expect(await leftoversOf(directory)).toEqual([]));
  });
});
