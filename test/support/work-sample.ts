/**
 * Prints how many milliseconds a core takes for a fixed piece of work, much like what controllers do: the mean of half
 * a second, in which other programs and machines may have had the core for a part of the time.
 */
const SAMPLE_MS = 500;

const pods = JSON.stringify(
  Array.from({ length: 200 }, (_, i) => ({
    metadata: { name: `pod-${i}`, labels: { base: String(i) } },
    status: { phase: 'Running', restarts: i },
  })),
);

function work(): void {
  for (let i = 0; i < 60; i++) JSON.stringify(JSON.parse(pods));
}

work();
const startMs = performance.now();
let times = 0;
let tookMs = 0;
do {
  work();
  times += 1;
  tookMs = performance.now() - startMs;
} while (tookMs < SAMPLE_MS);
process.stdout.write(String(tookMs / times));
