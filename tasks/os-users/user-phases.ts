// A user's record in users.json as the phase record of what makes and removes the user. The whole user is one entry: its
// uid is all that an undo needs, and that is recorded before anything of the user is made.

import type { Phase, PhaseRecord, PhaseStore } from "../phases/phases.ts";
import { readRecord, removeRecord, type UserRecord, writeRecord } from "./records.ts";

const PHASE = "recording";

/** Nothing to do when it is entered, because reserving the uid wrote the record. */
export function userPhase(undo: (record: UserRecord) => Promise<void>): Phase<unknown, UserRecord> {
  return { name: PHASE, act: async () => {}, undo: (_context, record) => undo(record) };
}

export function userPhaseStore(stateDir: string, name: string): PhaseStore {
  return {
    read() {
      const record = readRecord(stateDir, name);
      return record && { state: phaseState[record.state], phases: [{ name: PHASE, plan: record }] };
    },
    write({ state, phases }) {
      const [entry] = phases;
      if (!entry) throw new Error(`The user ${name} cannot be recorded without a uid.`);
      writeRecord(stateDir, name, { ...(entry.plan as UserRecord), state: recordState[state] });
    },
    remove: () => removeRecord(stateDir, name),
  };
}

const phaseState: Record<UserRecord["state"], PhaseRecord["state"]> = {
  intended: "making",
  made: "made",
  removing: "undoing",
};
const recordState: Record<PhaseRecord["state"], UserRecord["state"]> = {
  making: "intended",
  made: "made",
  undoing: "removing",
};
