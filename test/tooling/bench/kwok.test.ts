import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { COMPONENT, COMPONENT_LABEL, identityOf } from '../../../src/labels.ts';
import { LEASE_DURATION_SECONDS } from '../../../src/lease/lease.ts';
import { bareNodeOf, nodeOf } from '../../bench/scale/floor/objects.ts';
import { KWOK_PACKAGE, KWOK_VERSION } from '../../bench/scale/kwok/program.ts';

const read = (name: string): Promise<string> =>
  readFile(new URL(`../../bench/scale/kwok/${name}`, import.meta.url), 'utf8');

it('kwok is pinned by version and by sum', async () => {
  const [goMod, goSum] = await Promise.all([read('build/go.mod'), read('build/go.sum')]);
  expect(goMod).toContain(`tool ${KWOK_PACKAGE}`);
  expect(goMod).toContain(`sigs.k8s.io/kwok ${KWOK_VERSION}`);
  expect(goSum).toMatch(new RegExp(`^sigs\\.k8s\\.io/kwok ${KWOK_VERSION} h1:\\S+=$`, 'm'));
});

it('kwok manages the Nodes that are made for it, with Leases as long as those of VNodes', async () => {
  const { options } = parse(await read('kwok.yaml'));
  expect(options.manageNodesWithLabelSelector).toBe(`${COMPONENT_LABEL}=${COMPONENT.vnode}`);
  expect(options.nodeLeaseDurationSeconds).toBe(LEASE_DURATION_SECONDS);
});

it('a Node for kwok is that of the floor, before anybody has said that it is ready', () => {
  const place = { clusterName: 'default', ip: '192.0.2.1', hostName: 'base-1', port: 0 };
  const base = { identity: 'base-1', name: 'base', version: '1.0.0', ...place };
  const whole = JSON.parse(nodeOf(base, 'dev', new Date(0), 1));
  const { conditions, ...status } = whole.status;
  expect(conditions).not.toEqual([]);
  expect(JSON.parse(bareNodeOf(base, 'dev'))).toEqual({ ...whole, status });
  expect(identityOf(whole.metadata.name)).toBe('base-1');
});
