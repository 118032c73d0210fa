import { describe, expect, it } from 'vitest';
import { BuildProgress } from '../../../samples/control-plane/build-progress.ts';

describe('BuildProgress', () => {
  it('counts packages, not messages, and names the latest', () => {
    const progress = new BuildProgress({ packageCount: 2488, programs: ['k8s.io/kubernetes/cmd/kube-apiserver'] });
    progress.take('go: downloading k8s.io/api v0.35.4');
    progress.take('k8s.io/api/core/v1');
    expect(progress.describe(65_000)).toBe('compiling package 1 of 2488, 1 min 05 s (k8s.io/api/core/v1)');
  });

  it('says so when only the links are left', () => {
    const progress = new BuildProgress({ packageCount: 3, programs: ['a/cmd/x', 'a/cmd/y'] });
    for (const line of ['lib', 'a/cmd/x']) progress.take(line);
    expect(progress.describe(0)).toContain('compiling package 2 of 3');
    progress.take('a/cmd/y');
    expect(progress.describe(3_000)).toBe('linking the programs, 3 s');
  });
});
