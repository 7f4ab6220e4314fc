// A phase journal: an operation of several phases writes down how each phase is undone before the phase acts. After a
// crash anywhere, the record alone says what may exist on the host, and the operation can be finished or undone from it.
//
// Everything may be repeated: a crash in the middle of `act` or `undo` is followed by another call with the same plan.

export type Phase<Context, Plan = unknown> = {
  name: string;
  /**
   * Decides what `act` will make: names, ids, paths, as JSON. It is on disk before `act` is called, and is not decided
   * again after a crash. Absent: `undo` needs nothing but the context.
   */
  plan?: (context: Context) => Promise<Plan> | Plan;
  /** Looks at what is there: all, some or none of it may have been made before. */
  act: (context: Context, plan: Plan) => Promise<void>;
  /** Releases what `act` may have made, all, some or none of it. Absent: there is nothing to release. */
  undo?: (context: Context, plan: Plan) => Promise<void>;
};

/**
 * - `making`: any part of the recorded phases may exist.
 * - `made`: all of it exists, until it is undone on purpose.
 * - `undoing`: any part of the recorded phases may still exist; it is never finished, only undone.
 */
export type PhaseRecord = {
  state: "making" | "made" | "undoing";
  /** Those with something to undo, in the order they were entered. */
  phases: readonly { name: string; plan: unknown }[];
};

export type PhaseStore = {
  read(): PhaseRecord | undefined;
  /** On disk when it returns; throws otherwise. */
  write(record: PhaseRecord): void;
  remove(): void;
};

export type Operation<Context> = {
  // biome-ignore lint/suspicious/noExplicitAny: each phase has a plan of its own form
  phases: readonly Phase<Context, any>[];
  context: Context;
  store: PhaseStore;
  /** Called before each phase. It may throw to stop the operation, as for an aborted signal. */
  enter?: (phase: string) => void;
};

/** Entered before the operation is recorded as complete, and before an earlier, incomplete undo is completed. */
const RECORDING_MADE = "recording_made";
const FINISHING_UNDO = "finishing_undo";

/**
 * Makes everything, or finishes what an earlier run began. A failure undoes all of it, and is thrown; what cannot be
 * undone now stays recorded. An operation that was complete before runs its phases again, and is not undone by a failure.
 */
export async function runPhases<Context>(operation: Operation<Context>): Promise<void> {
  const { phases, context, store, enter = () => {} } = operation;
  if (store.read()?.state === "undoing") {
    enter(FINISHING_UNDO);
    await undoPhases({ phases, context, store });
  }
  const before = store.read();
  const state = before?.state === "made" ? "made" : "making";
  let recorded = before?.phases ?? [];
  try {
    for (const phase of phases) {
      enter(phase.name);
      let entry = recorded.find(({ name }) => name === phase.name);
      if (!entry && phase.undo) {
        entry = { name: phase.name, plan: (await phase.plan?.(context)) ?? null };
        recorded = [...recorded, entry];
        store.write({ state, phases: recorded });
      }
      await phase.act(context, entry?.plan);
    }
    if (state === "made") return;
    enter(RECORDING_MADE);
    store.write({ state: "made", phases: recorded });
  } catch (error) {
    // The record says what is left: the next run or undo begins with it.
    if (state !== "made") await undoPhases({ phases, context, store }).catch(() => {});
    throw error;
  }
}

/** Undoes whatever is recorded, in reverse order. Returns false when there is no record. */
export async function undoPhases<Context>(operation: Operation<Context>): Promise<boolean> {
  const { phases, context, store, enter = () => {} } = operation;
  const record = store.read();
  if (!record) return false;
  let left = record.phases;
  if (record.state !== "undoing") store.write({ state: "undoing", phases: left });
  for (const entry of record.phases.toReversed()) {
    const phase = phases.find(({ name }) => name === entry.name);
    // Recorded by another version of this operation: forgetting it would leave something behind for good.
    if (!phase?.undo) throw new Error(`The recorded phase ${entry.name} cannot be undone by this version.`);
    enter(phase.name);
    await phase.undo(context, entry.plan);
    left = left.filter((one) => one !== entry);
    if (left.length > 0) store.write({ state: "undoing", phases: left });
  }
  store.remove();
  return true;
}
