// What the journal holds, for a person on the host. Read-only, also safe beside a running agent.

import type { TaskResultReport } from "@holdfast/contracts/node/protocol";
import { readRecordFiles } from "./record-files.ts";
import { openStorageToRead } from "./storage.ts";
import { type InterruptedTask, type JournalRecord, taskStates } from "./task-states.ts";

export type JournalSummary = {
  unsent: TaskResultReport[];
  /** Running now, or interrupted when no agent runs. */
  started: InterruptedTask[];
  damage: string | undefined;
};

/** Undefined when there is no journal. Throws when it cannot be read. */
export function readJournal(directory: string): JournalSummary | undefined {
  const storage = openStorageToRead(directory);
  if (!storage) return undefined;
  try {
    const states = taskStates(0);
    const { damage } = readRecordFiles(storage, (payload) => {
      states.apply(JSON.parse(payload) as JournalRecord, Buffer.byteLength(payload));
    });
    return { unsent: states.unsent(), started: states.startedTasks(), damage };
  } finally {
    storage.close();
  }
}
