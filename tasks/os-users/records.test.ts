import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../control-plane/test/support/at-end.ts";
import { UIDS } from "./accounts.ts";
import { readRecord, recordIntention, removeRecord, writeRecord } from "./records.ts";

const nobodyHas = async () => false;

function stateDirAt(next_uid: number): string {
  const stateDir = mkdtempSync(join(tmpdir(), "holdfast-records-"));
  atEnd(() => rmSync(stateDir, { recursive: true, force: true }));
  writeFileSync(join(stateDir, "users.json"), JSON.stringify({ next_uid, users: {} }), { mode: 0o600 });
  return stateDir;
}

describe("the record of our users", () => {
  it("BM-01 gives uids in turn, past those that are taken, and begins again at the end", async () => {
    const stateDir = stateDirAt(UIDS.last - 1);
    const isTaken = async (uid: number) => uid === UIDS.last;
    expect((await recordIntention(stateDir, "one", "a", isTaken))?.uid).toBe(UIDS.last - 1);
    expect((await recordIntention(stateDir, "two", "b", isTaken))?.uid).toBe(UIDS.first);
    removeRecord(stateDir, "two");
    expect((await recordIntention(stateDir, "three", "c", isTaken))?.uid).toBe(UIDS.first + 1);
  });

  it("BM-01 gives no uid to two who ask at once", async () => {
    const stateDir = stateDirAt(UIDS.first);
    const names = ["one", "two", "three", "four"];
    const made = await Promise.all(names.map((name) => recordIntention(stateDir, name, name, nobodyHas)));
    expect(new Set(made.map((record) => record?.uid)).size).toBe(names.length);
    for (const name of names) expect(readRecord(stateDir, name)?.allocation_id).toBe(name);
  });

  it("BM-01 says when no uid is left", async () => {
    const stateDir = stateDirAt(UIDS.first + 5);
    expect(await recordIntention(stateDir, "one", "a", async () => true)).toBeUndefined();
    expect(readRecord(stateDir, "one")).toBeUndefined();
  });

  it("BM-01 begins at a uid of the range, in a file for the agent alone", async () => {
    const stateDir = stateDirAt(UIDS.first);
    rmSync(join(stateDir, "users.json"));
    const record = await recordIntention(stateDir, "one", "a", nobodyHas);
    expect(record?.uid).toBeGreaterThanOrEqual(UIDS.first);
    expect(record?.uid).toBeLessThanOrEqual(UIDS.last);
    expect(statSync(join(stateDir, "users.json")).mode & 0o777).toBe(0o600);
  });

  it("BM-01 mistakes nothing that every object has for a user", () => {
    const stateDir = stateDirAt(UIDS.first);
    expect(readRecord(stateDir, "constructor")).toBeUndefined();
    writeRecord(stateDir, "constructor", { allocation_id: "a", uid: UIDS.first, state: "made" });
    expect(readRecord(stateDir, "constructor")?.uid).toBe(UIDS.first);
  });
});
