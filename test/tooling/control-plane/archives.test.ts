import { describe, expect, it } from 'vitest';
import { archivesFor, PINNED_SUMS } from '../../../samples/control-plane/archives.ts';
import { urlOf } from '../../../samples/control-plane/download-source.ts';
import { COMPONENT_NAMES, ETCD_VERSION, KUBERNETES_VERSION } from '../../../samples/control-plane/versions.ts';

describe('archivesFor', () => {
  it.each([
    ['x64', 'amd64'],
    ['arm64', 'arm64'],
  ])('names the official files for %s, with a pinned sum each', (arch, architecture) => {
    const archives = archivesFor({ platform: 'linux', arch });
    expect(archives.map((archive) => urlOf(archive))).toEqual([
      `https://github.com/etcd-io/etcd/releases/download/v${ETCD_VERSION}/etcd-v${ETCD_VERSION}-linux-${architecture}.tar.gz`,
      `https://dl.k8s.io/${KUBERNETES_VERSION}/kubernetes-server-linux-${architecture}.tar.gz`,
    ]);
    expect(archives.flatMap(({ programs }) => Object.keys(programs)).sort()).toEqual([...COMPONENT_NAMES]);
    const lengths = archives.map(({ sum }) => [sum.algorithm, /^[0-9a-f]+$/.test(sum.hex) && sum.hex.length]);
    expect(lengths).toEqual([
      ['sha256', 64],
      ['sha512', 128],
    ]);
  });

  it('pins another sum for each architecture', () => {
    const sums = [...Object.values(PINNED_SUMS.kubernetes), ...Object.values(PINNED_SUMS.etcd)];
    for (const { amd64, arm64 } of sums) expect(amd64).not.toBe(arm64);
  });

  it.each([
    ['darwin', 'arm64'],
    ['win32', 'x64'],
    ['linux', 'ia32'],
  ])('has nothing for %s on %s, and says so', (platform, arch) => {
    expect(() => archivesFor({ platform, arch })).toThrow(`there are no official programs for ${platform} on ${arch}`);
  });

  it.each([
    [{ ...PINNED_SUMS, kubernetes: {} }, `no checksum is known for Kubernetes ${KUBERNETES_VERSION}`],
    [{ ...PINNED_SUMS, etcd: {} }, `no checksum is known for etcd ${ETCD_VERSION}`],
  ])('has nothing without a pinned sum, and says so', (sums, message) => {
    expect(() => archivesFor({ platform: 'linux', arch: 'x64', sums })).toThrow(message);
  });
});

describe('urlOf', () => {
  it('puts a mirror in the place of every project', () => {
    const urls = archivesFor({ platform: 'linux', arch: 'x64' }).map((archive) => urlOf(archive, 'http://m/k8s/'));
    expect(urls).toEqual([
      `http://m/k8s/v${ETCD_VERSION}/etcd-v${ETCD_VERSION}-linux-amd64.tar.gz`,
      `http://m/k8s/${KUBERNETES_VERSION}/kubernetes-server-linux-amd64.tar.gz`,
    ]);
  });
});
