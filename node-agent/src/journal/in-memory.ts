// A journal that is lost with its process: for simulated agents, of which thousands share one host. Its rules are
// those of the journal on disk.

import { idBudget, type Journal, journalOf } from "./journal.ts";
import { type JournalRecord, taskStates } from "./task-states.ts";

const CAPACITY = 8 * 1024 * 1024;
/** Ids are remembered until their tasks expire; after this many new ones, expired ids are removed. */
const PURGE_EVERY = 256;

export function openMemoryJournal(now: () => number = Date.now): Journal {
  const states = taskStates(idBudget(CAPACITY));
  let purgeAt = PURGE_EVERY;
  const apply = (record: JournalRecord) => {
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
