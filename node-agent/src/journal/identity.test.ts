import { chmodSync, cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { journalIdOf } from "./identity.ts";
import { openJournal } from "./journal.ts";

const sizeBytes = 64 * 1024;

async function idIn(directory: string, isDamaged = false): Promise<string> {
  const journal = openJournal(directory, { sizeBytes });
  const id = journalIdOf(directory, {
    isDamaged,
    onUnwritable(error) {
      throw error;
    },
  });
  await journal.close();
  return id;
}

describe("the id of a journal", () => {
  it("EXEC-02 stays the same as long as its files do", async () => {
    const directory = scratchDirectory();
    const id = await idIn(directory);
    expect(await idIn(directory)).toBe(id);
  });

  it.each<[string, (directory: string) => string | undefined]>([
    ["lost", (directory) => void ["journal.a", "journal.b"].map((name) => rmSync(join(directory, name)))],
    ["half lost", (directory) => void rmSync(join(directory, "journal.b"))],
    ["whose id was lost", (directory) => void rmSync(join(directory, "journal-id"))],
    [
      "copied with its id",
      (directory) => {
        const copy = scratchDirectory();
        cpSync(directory, copy, { recursive: true });
        return copy;
      },
    ],
  ])("EXEC-02 of one that was %s is another one", async (_what, change) => {
    const directory = scratchDirectory();
    const id = await idIn(directory);
    const changed = change(directory) ?? directory;
    const other = await idIn(changed);
    expect(other).not.toBe(id);
    expect(await idIn(changed)).toBe(other);
  });

  it("EXEC-02 of a damaged one is another one", async () => {
    const directory = scratchDirectory();
    const id = await idIn(directory);
    expect(await idIn(directory, true)).not.toBe(id);
  });

  it("EXEC-02 that cannot be stored is new at each start", async () => {
    const directory = scratchDirectory();
    const journal = openJournal(directory, { sizeBytes });
    const problems: unknown[] = [];
    const missing = { isDamaged: false, onUnwritable: (error: unknown) => problems.push(error) };
    rmSync(join(directory, "journal-id"), { force: true });
    // Its name is taken by a directory, so that root cannot write it either.
    cpSync(scratchDirectory(), join(directory, "journal-id"), { recursive: true });
    chmodSync(join(directory, "journal-id"), 0o700);
    expect(journalIdOf(directory, missing)).not.toBe(journalIdOf(directory, missing));
    expect(problems).toHaveLength(2);
    await journal.close();
  });
});
