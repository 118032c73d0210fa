import { describe, expect, it } from 'vitest';
import { pageBlock } from '../../support/page-block.ts';

/** `base write koupleless_dev/{user}/base/+`. */
function rightsOfMosquitto(): string[] {
  const ofBases = pageBlock('pattern write koupleless_dev/%u/base/+').trim().split('\n');
  const ofControllers = pageBlock('user module-controller').trim().split('\n').slice(1);
  const lines = [
    ...ofBases.map((line) => line.replace('pattern', 'base').replace('%u', '{user}')),
    ...ofControllers.map((line) => line.replace('topic', 'controller')),
  ];
  return lines.flatMap((line) => {
    const [who, right, topic] = line.split(/ +/);
    return (right === 'readwrite' ? ['read', 'write'] : [right]).map((one) => `${who} ${one} ${topic}`);
  });
}

const RULE = /^\{allow, (all|\{user, "module-controller"\}), (publish|subscribe), \[(.+)\]\}\.$/;

function rightsOfEmqx(): string[] {
  const rules = pageBlock('{allow, {user, "module-controller"}').trim().split('\n');
  expect(rules.pop()).toBe('{deny, all}.');
  return rules.flatMap((rule) => {
    const [, who, action, topics = ''] = RULE.exec(rule) ?? [];
    const right = action === 'publish' ? 'write' : 'read';
    return (JSON.parse(`[${topics}]`) as string[]).map(
      (topic) => `${who === 'all' ? 'base' : 'controller'} ${right} ${topic.replace('$' + '{username}', '{user}')}`,
    );
  });
}

describe('the rules for EMQX in docs/install.md', () => {
  it('give the same rights as those for Mosquitto, which attacks are tried against', () => {
    expect(rightsOfMosquitto()).toHaveLength(10);
    expect(rightsOfEmqx().sort()).toEqual(rightsOfMosquitto().sort());
  });
});
