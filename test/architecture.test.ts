import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { VARIABLES, type Variable, WITHOUT_EFFECT } from '../src/config/variables.ts';
import { ERROR_CATALOGUE } from '../src/errors.ts';
import { MODULE_TENANCY_SCHEMAS } from '../src/kinds/module-tenancy.ts';
import { createMetrics } from '../src/metrics.ts';
import { EXPORT_SERVICE_SCHEMAS } from '../src/platform/export/export-service.ts';
import { MODULE_DEPLOYMENT_SCHEMAS } from '../src/platform/rollout/module-deployment.ts';
import { MODULE_STATES } from '../src/tunnel/module.ts';
import { DEFINITIONS, PLATFORM } from './manifests/definitions.ts';
import {
  ARROWS,
  areaOf,
  EVERYWHERE,
  MAX_LINES,
  OVERLONG,
  PURE,
  PURE_PARTS_OF_NODE,
  packagesOf,
} from './unit/docs/architecture.ts';
import { anchorsOf, codesOf, linksOf, type Row, sectionOf, tableOf } from './unit/docs/markdown.ts';
import { computedEventReasons, eventReasonsOf, eventsOfRoom, waitingReasonsOf } from './unit/docs/reasons.ts';
import { fieldsOf } from './unit/docs/schema-table.ts';
import { pages, ROOT, readText, type SourceFile, sourceFilesOf } from './unit/docs/sources.ts';

const README = readText('README.md');
const [REFERENCE, MODULES, CONTRIBUTE] = ['docs/reference.md', 'docs/modules.md', 'docs/contribute.md'] as const;
const PAGES = pages();
const CORE = sourceFilesOf('src', 'tunnels');

/** `path: what` for every file in which `pattern` is found. */
function findings(files: readonly SourceFile[], pattern: RegExp, isAllowed: (path: string) => boolean): string[] {
  return files
    .filter(({ path }) => !isAllowed(path))
    .flatMap(({ path, bare }) => [...bare.matchAll(pattern)].map(([found]) => `${path}: ${found}`));
}

/** `Pod Warning Failed`. */
function eventsOf({ events = [] }: (typeof DEFINITIONS)[number]): string[] {
  return events.flatMap(({ about, type, reasons }) => reasons.map((reason) => `${about} ${type} ${reason}`));
}

describe('the sources', () => {
  it('import only along the arrows', () => {
    const wrong = CORE.flatMap(({ path, imports }) => {
      const from = areaOf(path);
      const allowed = ARROWS[from] ?? [];
      return imports
        .filter(({ isOfRepository }) => isOfRepository)
        .filter(({ target }) => areaOf(target) !== from && !allowed.includes('*') && !allowed.includes(areaOf(target)))
        .map(({ target }) => `${path} -> ${target}`);
    });
    expect(wrong).toEqual([]);
  });

  it('belong to an area, and every area has a file', () => {
    expect([...new Set(CORE.map(({ path }) => areaOf(path)))].sort()).toEqual(Object.keys(ARROWS).sort());
  });

  it('never import samples or tests', () => {
    const targets = CORE.flatMap(({ path, imports }) => imports.map(({ target }) => `${path} -> ${target}`));
    expect(targets.filter((line) => /-> (samples|test)\//.test(line))).toEqual([]);
  });

  it('know a package in one folder only', () => {
    const wrong = CORE.flatMap(({ path, imports }) =>
      imports
        .filter(({ isOfRepository, target }) => !isOfRepository && !target.startsWith('node:'))
        .filter(({ target }) => !packagesOf(path).includes(target))
        .map(({ target }) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('load @kubernetes/client-node only when a kubeconfig needs it', () => {
    const eager = CORE.filter(({ imports }) =>
      imports.some((entry) => entry.target === '@kubernetes/client-node' && !entry.isTypeOnly && !entry.isDynamic),
    );
    expect(eager.map(({ path }) => path)).toEqual([]);
  });

  it('keep decisions pure', () => {
    const files = CORE.filter(({ path }) => PURE.includes(path));
    expect(files.map(({ path }) => path)).toEqual(PURE);
    const imports = files.flatMap(({ path, imports: all }) =>
      all
        .filter(({ isTypeOnly, target }) => !isTypeOnly && ![...PURE, ...PURE_PARTS_OF_NODE].includes(target))
        .map(({ target }) => `${path} -> ${target}`),
    );
    expect(imports).toEqual([]);
    expect(findings(files, /\bawait\b|\basync\b|\bClock\b|\bMath\.random\b|\brandom[A-Z]\w+/g, () => false)).toEqual(
      [],
    );
  });

  it('name a transport where tunnels are configured or described only', () => {
    const isAllowed = (path: string): boolean => /^(tunnels|src\/(config|tunnel|assembly))\//.test(path);
    const naming = CORE.filter(({ path }) => !isAllowed(path) && /'(mqtt|http)_tunnel_provider'/.test(readText(path)));
    expect(naming.map(({ path }) => path)).toEqual([]);
  });

  it('read the environment in src/run.ts only', () => {
    expect(findings(CORE, /\bprocess\.env\b/g, (path) => path === 'src/run.ts')).toEqual([]);
  });

  it('read clocks and set timers in src/clock.ts only', () => {
    const clocks = /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bprocess\.hrtime\b|\buptime\(\)/g;
    const timers = /\bsetTimeout\b|\bsetInterval\b/g;
    const isClock = (path: string): boolean => path === 'src/clock.ts';
    expect([...findings(CORE, clocks, isClock), ...findings(CORE, timers, isClock)]).toEqual([]);
  });

  it('have no any, no silenced check, no console', () => {
    expect(findings(CORE, /\bany\b(?!\()/g, () => false)).toEqual([]);
    expect(findings(CORE, /\bconsole\.\w+/g, () => false)).toEqual([]);
    const texts = CORE.map(({ path }) => ({ path, lines: readText(path).split('\n') }));
    const silenced = texts.filter(({ lines }) =>
      lines.some((line) => /@ts-(ignore|nocheck|expect-error)|biome-ignore/.test(line)),
    );
    expect(silenced.map(({ path }) => path)).toEqual([]);
  });

  it(`have ${MAX_LINES} lines at most`, () => {
    const lengths = CORE.filter(({ lineCount }) => lineCount > MAX_LINES);
    const wrong = lengths.filter(({ path, lineCount }) => lineCount > (OVERLONG[path] ?? MAX_LINES));
    expect(wrong.map(({ path, lineCount }) => `${path}: ${lineCount}`)).toEqual([]);
    expect(Object.keys(OVERLONG).sort()).toEqual(lengths.map(({ path }) => path).sort());
  });
});

describe('the pages', () => {
  const table = (page: string, heading: string): Row[] => tableOf(sectionOf(readText(page), heading));
  const sorted = (rows: readonly Row[]): string[] => rows.map((row) => JSON.stringify(row)).sort();
  const code = (text: string | undefined): string => (text ? `\`${text}\`` : '');

  it('have the variables of the configuration', () => {
    const variables = Object.entries(VARIABLES) as [string, Variable<unknown>][];
    const rows = variables.map(([name, { rule, default: text, meaning }]) => ({
      Name: code(name),
      Default: code(text),
      Rule: rule.text,
      Meaning: meaning,
    }));
    expect(sorted(table(REFERENCE, 'Configuration'))).toEqual(sorted(rows));
  });

  it('name the variables without effect', () => {
    const names = codesOf(sectionOf(readText(REFERENCE), 'Variables of the Go program without effect'));
    expect(names.filter((name) => /^[A-Z_]+$/.test(name)).sort()).toEqual([...WITHOUT_EFFECT].sort());
  });

  it('have the error codes', () => {
    const rows = Object.entries(ERROR_CATALOGUE).map(([name, meaning]) => ({ Code: code(name), Meaning: meaning }));
    expect(sorted(table(REFERENCE, 'Error codes'))).toEqual(sorted(rows));
  });

  it('have the metrics', () => {
    const metrics = createMetrics().registry.getMetricsAsArray() as unknown as readonly {
      readonly constructor: { readonly name: string };
      readonly name: string;
      readonly help: string;
      readonly labelNames: readonly string[];
    }[];
    const rows = metrics.map((metric) => ({
      Name: code(metric.name),
      Type: metric.constructor.name.toLowerCase(),
      Labels: metric.labelNames.map(code).join(', '),
      Meaning: metric.help,
    }));
    expect(sorted(table(REFERENCE, 'Metrics'))).toEqual(sorted(rows));
  });

  const STATES = ['Healthy', 'Failing', 'Never installed'].flatMap((heading) => table(MODULES, heading));

  it('have a row for every waiting reason and every module state', () => {
    const cells = STATES.map((row) => row['Container state'] ?? '');
    const reasons = cells.flatMap(codesOf).filter((word) => /^[A-Z][a-z]/.test(word));
    expect([...new Set(reasons)].sort()).toEqual(waitingReasonsOf());
    const situations = STATES.flatMap((row) => codesOf(row['On the base'] ?? ''));
    expect(MODULE_STATES.filter((state) => !situations.includes(state))).toEqual([]);
  });

  it.each([
    ['ModuleDeployment', 'docs/module-deployments.md', 'Fields', 'spec', MODULE_DEPLOYMENT_SCHEMAS.spec],
    ['ModuleTenancy', 'docs/admission.md', 'Limits of a namespace', 'spec', MODULE_TENANCY_SCHEMAS.spec],
    ['ExportService', 'docs/export.md', 'Status', 'status', EXPORT_SERVICE_SCHEMAS.status],
  ])('have the fields of a %s', (_kind, page, heading, part, schema) => {
    const rows = tableOf(sectionOf(readText(page), heading));
    const shown = rows.map((row) => `${codesOf(row[`Field of \`${part}\``] ?? '')[0]}: ${row.Meaning}`);
    expect(shown).toEqual(fieldsOf(schema));
  });

  it('have the events', () => {
    const rows = table(REFERENCE, 'Events').flatMap((row) =>
      codesOf(row.Reason ?? '').map((reason) => `${row.Object} ${row.Type} ${reason}`),
    );
    expect(rows).toEqual(DEFINITIONS.flatMap(eventsOf));
    const [core] = DEFINITIONS;
    expect(core && eventsOf(core).sort()).toEqual(eventReasonsOf());
    expect(computedEventReasons()).toEqual([
      "src/pod/command-sender.ts: 'Normal', reason",
      'src/pod/status-writer.ts: type, reason',
      'src/vnode/node-controller.ts: type, reason',
    ]);
    for (const definition of PLATFORM) {
      const events = eventsOf(definition).map((event) => event.slice(event.indexOf(' ') + 1));
      expect([definition.name, ...new Set(events)].sort()).toEqual(
        [definition.name, ...eventsOfRoom(definition.name)].sort(),
      );
    }
    const named = STATES.flatMap((row) => codesOf(row.Event ?? ''));
    expect(named.filter((reason) => !eventReasonsOf().some((event) => event.endsWith(` ${reason}`)))).toEqual([]);
  });

  it('show the arrows of this test', () => {
    const rows = table(CONTRIBUTE, 'Import directions').map((row) => [
      codesOf(row.From ?? ''),
      codesOf(row['May import'] ?? ''),
    ]);
    const shown = rows.flatMap(([from = [], to = []]) => from.map((area) => [area, to] as const));
    const wanted = Object.entries(ARROWS).map(([area, targets]) => {
      const others = targets.includes('*') ? [] : targets.filter((target) => !EVERYWHERE.includes(target));
      return [area, others.sort()] as const;
    });
    const byArea = (entries: readonly (readonly [string, readonly string[]])[]) =>
      Object.fromEntries(entries.map(([area, targets]) => [area, [...targets].sort()]));
    expect(byArea(shown)).toEqual(byArea(wanted));
  });

  it.each(PAGES)('name files, links and scripts that exist: %s', (page) => {
    const text = readText(page);
    const folder = new URL('.', new URL(page, ROOT));
    const links = linksOf(text).filter((target) => !/^[a-z]+:/.test(target));
    const missing = links.filter((target) => {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? new URL(page, ROOT) : new URL(path, folder);
      if (!existsSync(file)) return true;
      return anchor !== undefined && !anchorsOf(readFileSync(file, 'utf8')).includes(anchor);
    });
    // Paths in a page of a folder may be meant from there.
    const paths = codesOf(text).filter((name) => /^(src|tunnels|samples|test|deploy|docs)(\/[\w.-]+)+\/?$/.test(name));
    const wrong = paths.filter((path) => !existsSync(new URL(path, ROOT)) && !existsSync(new URL(path, folder)));
    const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
    const used = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name ?? '');
    expect([...missing, ...wrong, ...used.filter((name) => !(name in scripts))]).toEqual([]);
  });

  it('have an index of all decisions', () => {
    const folder = 'docs/decisions/';
    const files = PAGES.filter((page) => /^docs\/decisions\/\d{4}-/.test(page)).map((page) =>
      page.slice(folder.length),
    );
    expect(linksOf(readText(`${folder}README.md`)).toSorted()).toEqual(files.toSorted());
    const headings = ['Context', 'Decision', 'Consequences'];
    const lacking = files.filter((file) =>
      headings.some((heading) => sectionOf(readText(folder + file), heading).trim() === ''),
    );
    expect(lacking).toEqual([]);
  });

  it('ask for the versions that the control plane is built with', () => {
    const go = /^go (\d+\.\d+)/m.exec(readText('samples/control-plane/build/go.mod'))?.[1];
    const kubernetes = /k8s\.io\/kubernetes (v[\d.]+)/.exec(readText('samples/control-plane/build/go.mod'))?.[1];
    expect(sectionOf(README, 'Try it')).toContain(`Go ${go} or newer`);
    expect(sectionOf(README, 'Try it')).toContain(`Kubernetes ${kubernetes}`);
    expect(sectionOf(README, 'Requirements')).toContain(`tested with ${kubernetes}`);
  });

  it('begin with a README that is read to its end', () => {
    expect(README.split('\n').length).toBeLessThanOrEqual(250);
  });
});
