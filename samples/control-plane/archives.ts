import { type ComponentName, ETCD_VERSION, KUBERNETES_VERSION } from './versions.ts';

export interface Sum {
  algorithm: 'sha256' | 'sha512';
  /** Lower-case hexadecimal. */
  hex: string;
}

/** An official release archive (tar.gz) that holds programs of ours. */
export interface Archive {
  /** Below the base URL of its project, or of a mirror. */
  path: string;
  /** Where its project publishes it; no slash at the end. */
  baseUrl: string;
  sum: Sum;
  /** Program to path in the archive. */
  programs: Partial<Record<ComponentName, string>>;
}

type Architecture = 'amd64' | 'arm64';

/** Version and architecture to sum. A new version needs new lines; without them it is built, not downloaded. */
export interface PinnedSums {
  kubernetes: Record<string, Record<Architecture, string>>;
  etcd: Record<string, Record<Architecture, string>>;
}

export const PINNED_SUMS: PinnedSums = {
  // SHA-512 of kubernetes-server-linux-*.tar.gz, from CHANGELOG/CHANGELOG-1.35.md of kubernetes/kubernetes, 008b3652.
  kubernetes: {
    'v1.35.4': {
      amd64:
        '7454c2d9023de3230972e965e1e2a587a291e2a1abee703bb0737057e1646b23ebac538b93dd778e93579e3c293dc1fa8d002e6848ad5ebc01598bc47358fe44',
      arm64:
        '67187a2fe780be7816f9d10e082ed02cbba306bab379980280d00ba4c4017ff53c50cd2ff81d248c91ddcc064276b8760e17c73a1a7da1d35067a6fc0ffbdc88',
    },
  },
  // SHA-256 of the release's archives, as several public build recipes pin it alike; SHA256SUMS itself was not read.
  etcd: {
    '3.6.5': {
      amd64: '66bad39ed920f6fc15fd74adcb8bfd38ba9a6412f8c7852d09eb11670e88cac3',
      arm64: '7010161787077b07de29b15b76825ceacbbcedcb77fe2e6832f509be102cab6b',
    },
  },
};

const ARCHITECTURES: Record<string, Architecture> = { x64: 'amd64', arm64: 'arm64' };

export interface ArchiveOptions {
  /** As in `process.platform`. */
  platform: string;
  /** As in `process.arch`. */
  arch: string;
  /** Default: those that are pinned here. */
  sums?: PinnedSums;
}

/** What to download for a machine: all four programs. Throws, with the reason, where that cannot be done safely. */
export function archivesFor({ platform, arch, sums = PINNED_SUMS }: ArchiveOptions): Archive[] {
  const architecture = ARCHITECTURES[arch];
  if (platform !== 'linux' || architecture === undefined) {
    throw new Error(`there are no official programs for ${platform} on ${arch}, only for linux on x64 and arm64`);
  }
  // The small one first: should one project be out of reach, the 400 MB of the other are not fetched in vain.
  return [etcdArchive(architecture, sums), kubernetesArchive(architecture, sums)];
}

function kubernetesArchive(architecture: Architecture, sums: PinnedSums): Archive {
  const hex = sums.kubernetes[KUBERNETES_VERSION]?.[architecture];
  const inside = (name: string) => `kubernetes/server/bin/${name}`;
  return {
    path: `${KUBERNETES_VERSION}/kubernetes-server-linux-${architecture}.tar.gz`,
    baseUrl: 'https://dl.k8s.io',
    sum: { algorithm: 'sha512', hex: known(hex, `Kubernetes ${KUBERNETES_VERSION}`) },
    programs: {
      'kube-apiserver': inside('kube-apiserver'),
      'kube-controller-manager': inside('kube-controller-manager'),
      'kube-scheduler': inside('kube-scheduler'),
    },
  };
}

function etcdArchive(architecture: Architecture, sums: PinnedSums): Archive {
  const hex = sums.etcd[ETCD_VERSION]?.[architecture];
  const name = `etcd-v${ETCD_VERSION}-linux-${architecture}`;
  return {
    path: `v${ETCD_VERSION}/${name}.tar.gz`,
    baseUrl: 'https://github.com/etcd-io/etcd/releases/download',
    sum: { algorithm: 'sha256', hex: known(hex, `etcd ${ETCD_VERSION}`) },
    programs: { etcd: `${name}/etcd` },
  };
}

function known(hex: string | undefined, what: string): string {
  if (!hex) throw new Error(`no checksum is known for ${what}`);
  return hex;
}
