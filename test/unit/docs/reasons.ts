import { COMMAND_EVENTS } from '../../../src/pod/command-sender.ts';
import { WAITING_REASONS } from '../../../src/pod/waiting-reason.ts';
import { readSource, sourceFilesOf } from './sources.ts';

/** Words of the code that users read in `kubectl`, taken from its text, since no one constant holds them. */

const WORD = "'([A-Z][A-Za-z]+)'";

/** Every waiting reason that a container of a vPod can have. */
export function waitingReasonsOf(): string[] {
  return sorted(Object.keys(WAITING_REASONS));
}

/** Every event that the code of the Virtual Kubelet records, as `Pod Warning Failed`. */
export function eventReasonsOf(): string[] {
  const recordedIn = sourceFilesOf('src/pod').flatMap(({ code }) => recorded(code, 'Pod'));
  const node = sourceFilesOf('src/vnode', 'src/lease').flatMap(({ code }) => recorded(code, 'Node'));
  const { code } = readSource('src/pod/pod-events.ts');
  const normal = wordsIn(code, `\\bnormal\\(${WORD}`);
  const warning = wordsIn(code, `\\bwarning\\(${WORD}`);
  const named = Object.values(WAITING_REASONS).flatMap(({ event, eventType }) =>
    event === undefined ? [] : [`${eventType} ${event}`],
  );
  const commanded = Object.values(COMMAND_EVENTS).map(([reason]) => reason);
  return sorted([
    ...recordedIn,
    ...node,
    ...[...normal, ...commanded].map((reason) => `Pod Normal ${reason}`),
    ...warning.map((reason) => `Pod Warning ${reason}`),
    ...named.map((reason) => `Pod ${reason}`),
  ]);
}

/** Every event that the code of a room of the platform records, as `Warning Failed`. */
export function eventsOfRoom(name: string): string[] {
  // The declarations of the room are what this is compared with.
  const codes = sourceFilesOf(`src/platform/${name}`).map(({ code }) => code.replace(/type: '(Normal|Warning)'/g, ''));
  return sorted(codes.flatMap((code) => recorded(code, '')).map((event) => event.trimStart()));
}

/** Events with a reason that is no literal: `eventReasonsOf` has to know each. */
export function computedEventReasons(): string[] {
  const places = sourceFilesOf('src/pod', 'src/vnode', 'src/lease').flatMap(({ path, code }) =>
    [...code.matchAll(/recorder\.event\([\w.]+(?:\([^)]*\))?, ([^,]+, [^,]+),/g)]
      .map(([, how = '']) => how)
      .filter((how) => !/^'\w+', '\w+'$/.test(how))
      .map((how) => `${path}: ${how}`),
  );
  return places.sort();
}

/** `'Warning', 'Failed'`, in a call or in a pair; about what the room is about, unless the call says that it is a Node. */
function recorded(code: string, kind: 'Pod' | 'Node' | ''): string[] {
  return [...code.matchAll(/(nodeSubject\([\w.]+\),\s*)?'(Normal|Warning)',\s*'([A-Z][A-Za-z]+)'/g)].map(
    ([, node, type, reason]) => `${node ? 'Node' : kind} ${type} ${reason}`,
  );
}

function wordsIn(code: string, pattern: string): string[] {
  return [...code.matchAll(new RegExp(pattern, 'g'))].map(([, word]) => word ?? '');
}

function sorted(words: readonly string[]): string[] {
  return [...new Set(words)].sort();
}
