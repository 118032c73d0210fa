import { describe, expect, it } from 'vitest';
import { MODULE_TENANCY_CRD } from '../../../src/kinds/module-tenancy.ts';

interface Structural {
  readonly properties: Record<string, Structural>;
  readonly items: Structural;
  readonly pattern?: string;
}

const schema = MODULE_TENANCY_CRD.spec.versions[0]?.schema as { readonly openAPIV3Schema: Structural } | undefined;

describe('a guest of a shared host', () => {
  const guest =
    schema?.openAPIV3Schema.properties.spec?.properties.exportSharedHosts?.items.properties.namespaces?.items;
  const isAllowed = (name: string): boolean => new RegExp(guest?.pattern ?? '').test(name);

  it.each(['team-b', 'b', '7', 'a--b'])('is a namespace by its name: %s', (name) => {
    expect(isAllowed(name)).toBe(true);
  });

  it.each(['*', 'team-*', 'Team-B', '-b', 'b-', 'a.b', 'a b'])(
    'is none by a name that no namespace has: %s',
    (name) => {
      expect(isAllowed(name)).toBe(false);
    },
  );
});
