// Waits for what has no event to wait for: polls until there is a result, or reports what never happened.

/** Short beside the seconds that are judged, and long beside what a request costs: many labs wait side by side. */
const PAUSE_MS = 250;
/** For whatever is waited for. How soon the first sighting must come is the scenario's to say. */
export const PATIENCE_SECONDS = 240;

/** `instead`: what was there, for whoever reads why it failed. */
export async function until<T>(
  what: string,
  seconds: number,
  ask: () => Promise<T | undefined | false>,
  instead: () => string = () => "",
  pauseMs = PAUSE_MS,
): Promise<T> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const asked = performance.now();
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${seconds} s: ${what}${instead()}`);
    // Each command is a process: polling without a pause would slow down what is waited for.
    const pause = Math.max(pauseMs, 2 * (performance.now() - asked));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** For what does have one. */
export async function within<T>(what: string, seconds: number, event: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what}`)), seconds * 1000);
  });
  try {
    return await Promise.race([event, late]);
  } finally {
    clearTimeout(timer);
  }
}
