import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { UIDS } from "./accounts.ts";
import { cleanUids, readRecord, recordIntention, removeRecord, type UidFacts, writeRecord } from "./records.ts";

const facts = (isTaken: (uid: number) => boolean, owning: number[] = []): UidFacts => ({
  isTaken: async (uid) => isTaken(uid),
  owning: async () => new Set(owning),
});
const nobodyHas = facts(() => false);

function stateDirAt(next_uid: number): string {
  const stateDir = mkdtempSync(join(tmpdir(), "holdfast-records-"));
  atEnd(() => rmSync(stateDir, { recursive: true, force: true }));
  writeFileSync(join(stateDir, "users.json"), JSON.stringify({ next_uid, users: {} }), { mode: 0o600 });
  return stateDir;
}

describe("the record of our users", () => {
  it("BM-01 gives uids in turn, past those that are taken, and begins again at the end", async () => {
    const stateDir = stateDirAt(UIDS.last - 1);
    const isTaken = facts((uid) => uid === UIDS.last);
    expect((await recordIntention(stateDir, "one", "a", isTaken))?.uid).toBe(UIDS.last - 1);
    expect((await recordIntention(stateDir, "two", "b", isTaken))?.uid).toBe(UIDS.first);
    removeRecord(stateDir, "two");
    expect((await recordIntention(stateDir, "three", "c", isTaken))?.uid).toBe(UIDS.first + 1);
  });

  it("BM-01 begins without a file, and has used one uid then", async () => {
    const stateDir = stateDirAt(UIDS.first);
    rmSync(join(stateDir, "users.json"));
    expect(await recordIntention(stateDir, "one", "a", nobodyHas)).toBeDefined();
    expect(cleanUids(stateDir)).toBe(UIDS.last - UIDS.first);
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
    expect(
      await recordIntention(
        stateDir,
        "one",
        "a",
        facts(() => true),
      ),
    ).toBeUndefined();
    expect(readRecord(stateDir, "one")).toBeUndefined();
  });

  it("BM-01 gives a released uid again only after nothing of it was found", async () => {
    const stateDir = stateDirAt(UIDS.first);
    const two = { next_uid: UIDS.last, clean: 2, quarantined: [], users: {} };
    writeFileSync(join(stateDir, "users.json"), JSON.stringify(two), { mode: 0o600 });
    const asked: string[] = [];
    const owns = (...owning: number[]): UidFacts => ({
      isTaken: async () => false,
      owning: async () => {
        asked.push("the disks");
        return new Set(owning);
      },
    });
    const give = async (name: string, uids: UidFacts) => (await recordIntention(stateDir, name, name, uids))?.uid;
    expect(await give("one", owns())).toBe(UIDS.last);
    expect(await give("two", owns())).toBe(UIDS.first);
    expect({ asked, clean: cleanUids(stateDir) }).toEqual({ asked: [], clean: 0 });
    removeRecord(stateDir, "one");
    expect(await give("three", owns(UIDS.first + 1, UIDS.first + 2))).toBe(UIDS.first + 3);
    expect(asked).toEqual(["the disks"]);
    expect(await give("four", owns())).toBe(UIDS.first + 4);
    expect(asked).toEqual(["the disks"]);
  });

  it("BM-02 keeps the uid of a removal that was not completed out of use", async () => {
    const stateDir = stateDirAt(UIDS.first);
    writeRecord(stateDir, "ada", { allocation_id: "old", uid: UIDS.first + 1, state: "removing" });
    expect((await recordIntention(stateDir, "ada", "new", nobodyHas))?.uid).toBe(UIDS.first);
    expect((await recordIntention(stateDir, "bob", "b", nobodyHas))?.uid).toBe(UIDS.first + 2);
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
