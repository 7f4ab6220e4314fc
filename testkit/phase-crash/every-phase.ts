// Runs a task type in processes that die by SIGKILL at each of its phases, one after the other, and has a test recover
// from it. For what only a real process leaves behind; operations without a host are faster with every-step.ts.

/** Calls `recover` once for each phase that `complete` reports, after a run that died when it entered that phase. */
export async function dieAtEveryPhase<Place>(test: {
  prepare: () => Promise<Place> | Place;
  /** Runs the task to its end and returns its phases. */
  complete: (place: Place) => Promise<readonly string[]>;
  die: (place: Place, phase: string) => Promise<void>;
  /** Repairs it and looks at what is there. */
  recover: (place: Place, phase: string) => Promise<void>;
}): Promise<void> {
  const phases = new Set(await test.complete(await test.prepare()));
  if (phases.size === 0) throw new Error("the task has no phase to die at");
  for (const phase of phases) {
    const place = await test.prepare();
    await test.die(place, phase);
    await test.recover(place, phase);
  }
}
