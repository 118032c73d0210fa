import { writeFile } from 'node:fs/promises';

/** Of the process that makes it. */
export interface ProfileCalls {
  /** Begins a CPU profile. */
  startProfile(): Promise<void>;
  /** Ends it, and writes it to this path (`.cpuprofile`, as the DevTools of Chrome read it). */
  writeProfile(path: string): Promise<void>;
}

/** Finer ones cost more than what is measured at rest. */
const INTERVAL_US = 2_000;

/** Loads nothing before the first call: memory is measured in the same process. */
export function profileCalls(): ProfileCalls {
  let writeTo: ((path: string) => Promise<void>) | undefined;
  return {
    async startProfile() {
      if (writeTo !== undefined) throw new Error('a profile was begun already');
      const { Session } = await import('node:inspector/promises');
      const session = new Session();
      session.connect();
      await session.post('Profiler.enable');
      await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
      await session.post('Profiler.start');
      writeTo = async (path) => {
        const { profile } = await session.post('Profiler.stop');
        session.disconnect();
        await writeFile(path, JSON.stringify(profile));
      };
    },
    async writeProfile(path) {
      if (writeTo === undefined) throw new Error('no profile was begun');
      await writeTo(path);
      writeTo = undefined;
    },
  };
}
