import { afterEach, describe, expect, it } from 'vitest';
import { recordedHttp, recordedMqtt } from './recordings.ts';
import { BIZ, type Message, type Rig, startRig } from './rig.ts';
import { shapeOf } from './shape.ts';

const IDENTITY = '192.0.2.2';
const RECORDED_BASE = { identity: IDENTITY, name: 'TO_BE_IMPLEMENTED', localIP: IDENTITY, localHostName: IDENTITY };

let rig: Rig;
afterEach(() => rig.stop());

/** Sends what the recorded controller sent, and returns what the base said each time the recorded base spoke. */
async function replay(): Promise<Array<{ kind: string; recorded: Message; simulated: Message }>> {
  rig = await startRig({ bases: [RECORDED_BASE] });
  rig.fleet.setFault({
    urlIncludes: 'nope.jar',
    failure: 'java.io.FileNotFoundException: /nope.jar (No such file or directory)',
  });
  const spoken: Array<{ kind: string; recorded: Message; simulated: Message }> = [];
  for (const { kind, isFromBase, text } of recordedMqtt()) {
    const heard = spoken.filter((message) => message.kind === kind).length;
    if (!isFromBase) {
      rig.controller.send(IDENTITY, kind.replace('base/', ''), text);
    } else if (kind !== 'base/heart' || heard === 0) {
      // By kind: the agent works on commands side by side, so the recorded answers overtook each other.
      const simulated = await rig.controller.nth(heard + 1, { kind: kind.replace('base/', '') });
      spoken.push({ kind, recorded: JSON.parse(text), simulated });
    }
  }
  return spoken;
}

describe('the wire of a simulated base', () => {
  it('is that of the recorded base: the same messages with the same keys and types', async () => {
    const spoken = await replay();
    expect(spoken.length).toBeGreaterThan(10);
    for (const { simulated, recorded } of spoken) {
      expect(shapeOf(simulated)).toEqual(shapeOf(recorded));
    }
    expect(rig.controller.heard).toHaveLength(spoken.length);
  });

  it('says the recorded words, where these do not depend on time and place', async () => {
    const spoken = await replay();
    const exact = spoken.filter(({ kind, recorded }) => {
      const isInstall = recorded.data.command === 'installBiz' || recorded.data.command === 'batchInstallBiz';
      return kind !== 'base/health' && !isInstall;
    });
    expect(exact.map(({ kind }) => kind)).toEqual([
      'base/queryBaseline',
      'base/heart',
      'base/simpleBiz',
      'base/simpleBiz',
      'base/bizOperation',
      'base/bizOperation',
      'base/simpleBiz',
    ]);
    for (const { recorded, simulated } of exact) expect(simulated.data).toEqual(recorded.data);
  });

  it('reports failed installs as recorded: message, first line of the stack trace, missing names', async () => {
    const failed = (await replay()).filter(({ recorded }) => recorded.data.response?.code === 'FAILED').slice(0, 2);
    expect(failed).toHaveLength(2);
    for (const { recorded, simulated } of failed) {
      const [wanted, got] = [recorded.data, simulated.data];
      expect(got.response.message).toBe(wanted.response.message);
      const firstLineOf = (text: string): string | undefined => text.split('\n\tat ')[0];
      expect(firstLineOf(got.response.data.message)).toBe(firstLineOf(wanted.response.data.message));
      expect(got.response.data.message.split('\n\tat ').length).toBeGreaterThan(5);
      expect([got.bizName, got.bizVersion]).toEqual([wanted.bizName, wanted.bizVersion]);
    }
  });

  it('answers a second install as recorded over HTTP', async () => {
    rig = await startRig();
    rig.controller.send('base-1', 'installBiz', {
      ...BIZ,
      bizName: 'biz1-web-single-host',
      bizVersion: '0.0.1-SNAPSHOT',
    });
    await rig.controller.nth(1, { kind: 'bizOperation' });
    rig.controller.send('base-1', 'installBiz', {
      ...BIZ,
      bizName: 'biz1-web-single-host',
      bizVersion: '0.0.1-SNAPSHOT',
    });
    const { data } = await rig.controller.nth(2, { kind: 'bizOperation' });
    const { baseIdentity: _, ...recorded } = recordedHttp('POST /installBiz')[1] ?? {};
    expect(data.response).toEqual(recorded);
  });

  it('answers queryAllBiz on base/biz with the full list, as an older agent', async () => {
    rig = await startRig({ legacyBizTopic: true });
    rig.fleet.base('base-1').placeModule(BIZ);
    rig.controller.send('base-1', 'queryAllBiz', {});
    const { data } = await rig.controller.nth(1, { kind: 'biz' });
    const recorded = recordedHttp('POST /queryAllBiz')[1];
    expect(shapeOf(data.data)).toEqual(shapeOf(recorded?.data));
    expect(data.data[0]).toMatchObject({ bizName: 'biz1', bizVersion: '1.0.0', bizState: 'activated' });
    expect(rig.controller.all({ kind: 'simpleBiz' })).toEqual([]);
  });

  it('publishes with QoS 1, unretained, as {prefix}@@@{identity}', async () => {
    rig = await startRig({ clientIdPrefix: 'shop' });
    rig.controller.send('base-1', 'installBiz', BIZ);
    await rig.controller.nth(1, { kind: 'bizOperation' });
    const records = rig.broker.recorder.records({ topic: 'koupleless_dev/+/base/+' });
    expect(records.map(({ topic, clientId, qos, retain }) => [topic.split('/').at(-1), clientId, qos, retain])).toEqual(
      [
        ['queryBaseline', 'shop@@@base-1', 1, false],
        ['heart', 'shop@@@base-1', 1, false],
        ['bizOperation', 'shop@@@base-1', 1, false],
      ],
    );
  });

  it('puts env in lower case and the skewed clock of the base into its messages', async () => {
    const before = Date.now();
    rig = await startRig({ env: 'DEV', clockSkewMs: -3_600_000 });
    const { publishTimestamp } = await rig.controller.nth(1, { kind: 'heart' });
    expect(publishTimestamp).toBeGreaterThanOrEqual(before - 3_600_000);
    expect(publishTimestamp).toBeLessThanOrEqual(Date.now() - 3_600_000);
  });

  it('gives each base the metadata that its options say', async () => {
    const bases = [
      {},
      { identity: 'shop', name: 'shop-base', version: '2.0.0', clusterName: 'east', localIP: '192.0.2.9' },
    ];
    rig = await startRig({ bases });
    const first = await rig.controller.nth(1, { kind: 'heart', identity: 'base-1' });
    expect(first.data).toEqual({
      baseMetadata: { clusterName: 'default', identity: 'base-1', name: 'base', version: '1.0.0' },
      localHostName: 'base-1',
      localIP: '198.51.100.1',
      port: 0,
      state: 'activated',
    });
    const second = await rig.controller.nth(1, { kind: 'heart', identity: 'shop' });
    expect(second.data).toMatchObject({
      baseMetadata: { clusterName: 'east', identity: 'shop', name: 'shop-base', version: '2.0.0' },
      localIP: '192.0.2.9',
    });
  });
});
