import { expect, it } from 'vitest';
import { Screen, type Terminal } from '../../../samples/demo/screen.ts';

function recorder(part: Partial<Terminal>): Terminal & { text: string } {
  return {
    ...part,
    text: '',
    write(text) {
      this.text += text;
    },
  };
}

it('on a terminal the block is drawn in place, and lines that stay go above it', () => {
  const terminal = recorder({ isTTY: true, columns: 10, rows: 24 });
  const screen = new Screen(terminal);
  screen.show(['a', 'b']);
  screen.print('stays');
  screen.show(['much too long']);
  const erase = '\x1b[2A\r\x1b[J';
  expect(terminal.text).toBe(`a\nb\n${erase}stays\na\nb\n${erase}much too…\n`);
});

it('the block is never higher than the terminal', () => {
  const terminal = recorder({ isTTY: true, columns: 10, rows: 5 });
  new Screen(terminal).show(['1', '2', '3', '4', '5']);
  expect(terminal.text).toBe('1\n2\n3\n');
});

it('elsewhere there are lines only, without any escape sequence', () => {
  const terminal = recorder({});
  const screen = new Screen(terminal);
  screen.show(['block']);
  screen.print(screen.paint('green', '✓ done'));
  expect(terminal.text).toBe('✓ done\n');
});
