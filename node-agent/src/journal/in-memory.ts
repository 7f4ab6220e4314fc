// A journal that is lost with its process: for simulated agents, of which thousands share one host. Its rules are
// those of the journal on disk.

import type { TaskResultReport } from "@holdfast/contracts/node/protocol";
import { idBudget, type Journal, journalOf } from "./journal.ts";
import { type JournalRecord, type JournalReport, taskStates } from "./task-states.ts";

const CAPACITY = 8 * 1024 * 1024;
/** Ids are remembered until their tasks expire; after this many new ones, expired ids are removed. */
const PURGE_EVERY = 256;

export function openMemoryJournal<Report extends JournalReport = TaskResultReport>(
  now: () => number = Date.now,
): Journal<Report> {
  const states = taskStates<Report>(idBudget(CAPACITY));
  let purgeAt = PURGE_EVERY;
  const apply = (record: JournalRecord<Report>) => {
    states.apply(record, Buffer.byteLength(JSON.stringify(record)));
    if (states.rememberedCount() < purgeAt) return;
    states.forgetExpired(now());
    purgeAt = states.rememberedCount() + PURGE_EVERY;
  };
  const nothing = Promise.resolve();
  const writer = {
    write: apply,
    writeEvenIfItFails: apply,
    writeIfPossible: apply,
    sync: () => nothing,
    works: () => true,
    settle: () => nothing,
  };
  return journalOf(states, writer, { directory: "memory", now, capacity: CAPACITY, close: () => undefined });
}
