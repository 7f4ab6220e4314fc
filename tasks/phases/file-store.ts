// Phase records as files, one for each operation: <state dir>/phases/<id>.json. The id is that of the task, or of
// whatever the operation makes. Only the agent's account may write there; a record that cannot be read is an error,
// because taking it for none would leave behind what it names.

import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readFileIfPresent, syncDirectory, writeFileDurably } from "@holdfast/kit/files";
import { PhaseRecord } from "./phase-record.generated.ts";
import type { PhaseStore } from "./phases.ts";

/** Nothing from a wire becomes a path. */
const idForm = /^[a-zA-Z0-9_-]{1,128}$/;

export class PhaseRecordUnusable extends Error {
  override name = "PhaseRecordUnusable";
}

const directoryOf = (stateDir: string) => join(stateDir, "phases");

export function filePhaseStore(stateDir: string, id: string): PhaseStore {
  if (!idForm.test(id)) throw new Error(`${JSON.stringify(id)} cannot name a phase record.`);
  const directory = directoryOf(stateDir);
  const path = join(directory, `${id}.json`);
  return {
    read() {
      const text = readFileIfPresent(path);
      if (text === undefined) return undefined;
      try {
        return PhaseRecord.parse(JSON.parse(text));
      } catch {
        throw new PhaseRecordUnusable(`${path} does not hold what the agent writes there.`);
      }
    },
    write(record) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      writeFileDurably(path, `${JSON.stringify(record)}\n`, 0o600);
    },
    remove() {
      rmSync(path, { force: true });
      syncDirectory(directory);
    },
  };
}

/** The ids of all operations with a record: complete ones, and those that a crash cut short. */
export function recordedOperations(stateDir: string): string[] {
  try {
    return readdirSync(directoryOf(stateDir)).flatMap((name) => /^(.+)[.]json$/.exec(name)?.[1] ?? []);
  } catch {
    return [];
  }
}

/** Of an agent that was killed while it wrote a record. To be called before the first record is written. */
export function removeUnfinishedWrites(stateDir: string): void {
  const directory = directoryOf(stateDir);
  if (!existsSync(directory)) return;
  for (const name of readdirSync(directory))
    if (/[.]json[.]\d+[.]tmp$/.test(name)) rmSync(join(directory, name), { force: true });
}
