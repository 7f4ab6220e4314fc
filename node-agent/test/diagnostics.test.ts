import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { type Diagnostics, openDiagnostics } from "../src/diagnostics/ring.ts";
import { createLog } from "../src/log.ts";
import { smallFileSystem } from "./support/small-file-system.ts";

const instanceId = "3b241101-e2bb-4255-8caf-4136c566a962";
const START = Date.parse("2026-01-01T00:00:00Z");

function setUp(directory = scratchDirectory()) {
  const clock = { now: START };
  const lines: string[] = [];
  const log = createLog({ level: "debug", journald: true, write: (line) => lines.push(line) });
  const open = () => openDiagnostics(directory, { log, instanceId, now: () => clock.now });
  return { directory, path: join(directory, "diagnostics.log"), clock, lines, open };
}

function details(diagnostics: Diagnostics, count = 600): string[] {
  return diagnostics.recent(count).map(({ detail }) => detail);
}

describe("diagnostic records", () => {
  it("AGENT-01 go to the file and to the log, and have the form of the contract", () => {
    const { open, lines, path } = setUp();
    const diagnostics = open();
    diagnostics.record("api_unreachable", "ECONNREFUSED 10.0.0.1:18442", "corr-1");
    diagnostics.record("process_alive", "connected");
    const [alive, unreachable] = diagnostics.recent(2);
    expect(unreachable).toMatchObject({
      reason: "api_unreachable",
      correlation_id: "corr-1",
      instance_id: instanceId,
    });
    for (const record of [alive, unreachable]) expect(DiagnosticRecord.parse(record)).toEqual(record);
    expect(lines[0]).toMatch(/^<4>.*"reason":"api_unreachable","detail":"ECONNREFUSED 10.0.0.1:18442"/);
    expect(lines[1]).toMatch(/^<6>/);
    expect(readFileSync(path, "utf8")).toContain('"detail":"ECONNREFUSED 10.0.0.1:18442"');
    diagnostics.close();
  });

  it("AGENT-01 are kept over a restart, and the numbers go on", () => {
    const { open } = setUp();
    let diagnostics = open();
    diagnostics.record("cert_expired", "a");
    diagnostics.record("clock_skew", "b");
    const [newest] = diagnostics.recent(1);
    diagnostics.close();
    diagnostics = open();
    expect(details(diagnostics)).toEqual(["b", "a"]);
    diagnostics.record("process_alive", "c");
    expect(diagnostics.recent(1)[0]?.seq).toBe((newest?.seq ?? 0) + 1);
    expect(diagnostics.newerThan(newest?.seq ?? 0).map(({ detail }) => detail)).toEqual(["c"]);
    diagnostics.close();
  });

  it("AGENT-01 the history is bounded: the newest 512 stay, the file never grows", () => {
    const { open, path, clock } = setUp();
    let diagnostics = open();
    const size = statSync(path).size;
    for (let number = 0; number < 1300; number += 1) {
      diagnostics.record("task_poll_failed", `failure ${number}`);
      clock.now += 61_000;
    }
    diagnostics.close();
    diagnostics = open();
    expect(details(diagnostics)).toEqual(Array.from({ length: 512 }, (_, index) => `failure ${1299 - index}`));
    const oldest = diagnostics.newerThan(-1);
    expect(oldest).toHaveLength(64);
    expect(oldest[0]?.detail).toBe("failure 788");
    expect(statSync(path).size).toBe(size);
    diagnostics.close();
  });

  it("AGENT-01 a retry loop is one record with a count, and does not flush the history", () => {
    const { open, clock, lines } = setUp();
    let diagnostics = open();
    diagnostics.record("process_alive", "connected");
    for (let number = 0; number < 50; number += 1) {
      clock.now += 30_000;
      diagnostics.record("api_unreachable", "ECONNREFUSED");
      diagnostics.record("task_result_failed", "ECONNREFUSED");
    }
    const end = new Date(clock.now).toISOString();
    const expected = [
      `ECONNREFUSED (50 times, last at ${end})`,
      `ECONNREFUSED (50 times, last at ${end})`,
      "connected",
    ];
    expect(details(diagnostics)).toEqual(expected);
    expect(lines, "the log has every one").toHaveLength(101);
    diagnostics.close();
    diagnostics = open();
    expect(details(diagnostics)).toEqual(expected);
    clock.now += 60_000;
    diagnostics.record("api_unreachable", "ECONNREFUSED");
    expect(details(diagnostics)[0], "after a pause it is something new").toBe("ECONNREFUSED");
    diagnostics.close();
  });

  it("AGENT-01 what goes on for hours shows up every hour", () => {
    const { open, clock } = setUp();
    const diagnostics = open();
    for (let minute = 0; minute < 180; minute += 1) {
      diagnostics.record("api_unreachable", "ECONNREFUSED");
      clock.now += 59_000;
    }
    expect(details(diagnostics)).toHaveLength(3);
    diagnostics.close();
  });

  it("AGENT-01 different details of one reason are kept, up to a few a minute", () => {
    const { open } = setUp();
    const diagnostics = open();
    for (let number = 0; number < 1000; number += 1) diagnostics.record("task_refused", `task ${number}`);
    expect(details(diagnostics)).toHaveLength(8);
    expect(details(diagnostics)[0]).toMatch(/^task 7 \(993 times/);
    diagnostics.close();
  });

  it("AGENT-10 hold no secret, in the file, in memory and in the log", () => {
    const { open, path, lines } = setUp();
    const diagnostics = open();
    const canary = "CANARY0canary1CANARY2canary3CANARY4canary5x";
    diagnostics.record("auth_failed", `sent hfe_${canary}.${canary} and Bearer ${canary}`, `hfs_${canary}`);
    const pem = `-----BEGIN PRIVATE KEY-----\n${canary}\n-----END PRIVATE KEY-----`;
    diagnostics.record("identity_key_missing", `not a key: ${pem}`);
    for (const text of [readFileSync(path, "utf8"), JSON.stringify(diagnostics.recent(9)), lines.join("")]) {
      expect(text.includes(canary)).toBe(false);
      expect(text.includes("redacted")).toBe(true);
    }
    diagnostics.close();
  });

  it("AGENT-01 take any text: the line stays one line of its length, and the record stays valid", () => {
    const { open, path } = setUp();
    const diagnostics = open();
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 900 }),
        fc.string({ unit: "binary" }),
        (text, correlation) => {
          diagnostics.record("task_poll_failed", text, correlation);
          for (const record of diagnostics.recent(1)) expect(DiagnosticRecord.parse(record)).toEqual(record);
          const lines = readFileSync(path, "latin1").split("\n");
          expect(lines.slice(0, -1).filter((line) => line.length !== 1023)).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
    expect(
      readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line.startsWith("{")).length,
    ).toBeGreaterThan(0);
    diagnostics.close();
  });

  it("AGENT-01 a torn or damaged line is passed over, and the rest is read", () => {
    const { open, path, clock } = setUp();
    fc.assert(
      fc.property(
        fc.nat({ max: 5 }),
        fc.nat({ max: 1023 }),
        fc.constantFrom(" ", "\0", "x", '"'),
        (line, at, filler) => {
          writeFileSync(path, "");
          const diagnostics = open();
          for (let number = 0; number < 6; number += 1) {
            diagnostics.record("task_poll_failed", `failure ${number}`);
            clock.now += 61_000;
          }
          diagnostics.close();
          const first = diagnostics.newerThan(-1)[0]?.seq ?? 0;
          const bytes = readFileSync(path);
          const start = ((first + line) % 512) * 1024;
          bytes.fill(filler, start + at, start + 1024);
          writeFileSync(path, bytes);
          const again = open();
          const others = [5, 4, 3, 2, 1, 0]
            .filter((number) => number !== line)
            .map((number) => `failure ${number}`);
          expect(details(again).filter((detail) => detail !== `failure ${line}`)).toEqual(others);
          again.record("process_alive", "after");
          expect(details(again)[0]).toBe("after");
          again.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  it("AGENT-01 a lost file begins above everything that was delivered", () => {
    const { open, path, clock } = setUp();
    let diagnostics = open();
    for (let number = 0; number < 20; number += 1) {
      diagnostics.record("task_poll_failed", `failure ${number}`);
      clock.now += 61_000;
    }
    const [last] = diagnostics.recent(1);
    diagnostics.close();
    truncateSync(path, 100);
    diagnostics = open();
    diagnostics.record("process_alive", "anew");
    expect(diagnostics.recent(1)[0]?.seq).toBeGreaterThan(last?.seq ?? 0);
    expect(statSync(path).size).toBe(512 * 1024);
    diagnostics.close();
  });

  it("AGENT-01 without a usable directory they are in memory and in the log", () => {
    const { open, lines } = setUp("/proc/nowhere");
    const diagnostics = open();
    expect(diagnostics.problem()).toContain("diagnostics.log");
    diagnostics.record("state_dir_read_only", "a");
    expect(details(diagnostics)).toEqual(["a"]);
    expect(lines).toHaveLength(1);
    diagnostics.close();
  });

  it.skipIf(lacks("root"))(
    "AGENT-01 survive a full disk, and a disk full from the start leaves no half file",
    () => {
      const { directory } = smallFileSystem(600 * 1024);
      const { open, path } = setUp(directory);
      let diagnostics = open();
      expect(() => writeFileSync(join(directory, "filler"), Buffer.alloc(600 * 1024))).toThrow("ENOSPC");
      diagnostics.record("disk_full", "no space");
      diagnostics.close();
      diagnostics = open();
      expect(diagnostics.problem()).toBeUndefined();
      expect(details(diagnostics)).toEqual(["no space"]);
      diagnostics.close();

      const full = setUp(smallFileSystem(64 * 1024).directory);
      const inMemory = full.open();
      expect(inMemory.problem()).toContain("ENOSPC");
      expect(() => statSync(full.path)).toThrow("ENOENT");
      inMemory.record("disk_full", "no space");
      expect(details(inMemory)).toEqual(["no space"]);
      expect(statSync(path).size).toBe(512 * 1024);
    },
  );

  it.skipIf(lacks("root"))("AGENT-01 tell when the file cannot be written any more", () => {
    const { directory, remount } = smallFileSystem(1024 * 1024);
    const { open } = setUp(directory);
    open().close();
    remount("ro");
    const diagnostics = open();
    expect(diagnostics.problem()).toContain("EROFS");
    diagnostics.record("state_dir_read_only", "a");
    expect(details(diagnostics)).toEqual(["a"]);
    diagnostics.close();
  });

  it.skipIf(lacks("root"))(
    "AGENT-01 come to the file when a disk that was full at the start has room again",
    () => {
      const { directory } = smallFileSystem(600 * 1024);
      const { open, path } = setUp(directory);
      const filler = join(directory, "filler");
      writeFileSync(filler, Buffer.alloc(200 * 1024));
      const diagnostics = open();
      diagnostics.record("disk_full", "no space");
      expect(diagnostics.problem()).toContain("ENOSPC");
      expect(() => statSync(path)).toThrow("ENOENT");
      rmSync(filler);
      // Asked with every heartbeat, whether or not anything happens.
      expect(diagnostics.problem()).toBeUndefined();
      diagnostics.record("process_alive", "room again");
      diagnostics.close();
      const again = open();
      expect(details(again)).toEqual(["room again", "no space"]);
      again.close();
    },
  );
});
