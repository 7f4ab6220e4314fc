import {
  appendFileSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { createLog } from "../log.ts";
import { answerLogRequest } from "./answer.ts";
import { type LogStoreOptions, openLogStore } from "./log-store.ts";

/** Files have the time of the machine. */
const START = Date.now();
const DAY = 86_400_000;

function store(options: Partial<LogStoreOptions> = {}) {
  const directory = options.directory ?? scratchDirectory();
  let now = START;
  const opened = openLogStore({ directory, mostBytes: 1024 * 1024, mostAgeMs: DAY, now: () => now, ...options });
  const files = () => readdirSync(directory).filter((name) => name.endsWith(".jsonl"));
  return {
    ...{ ...opened, directory, files },
    write: (fields: object) =>
      opened.append(`${JSON.stringify({ time: new Date(now).toISOString(), ...fields })}\n`),
    messages: (id: string, limit = 100) =>
      opened.find({ ids: [id], limit }).lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
    pass: (ms: number) => {
      now += ms;
    },
  };
}

describe("the log store", () => {
  it("DASH-08 finds lines by any id in them, oldest first, and no others", () => {
    const { write, messages, close } = store();
    const [a, b, node] = [uuidv7(), uuidv7(), uuidv7()];
    write({ correlation_id: a, msg: "first" });
    write({ correlation_id: b, node_id: node, msg: "other" });
    write({ msg: `names ${a} in its text alone` });
    write({ correlation_id: a, node_id: node, msg: "second" });
    expect(messages(a)).toEqual(["first", "second"]);
    expect(messages(node)).toEqual(["other", "second"]);
    expect(messages(a, 1)).toEqual(["second"]);
    expect(messages(uuidv7())).toEqual([]);
    close();
  });

  it("DASH-08 returns the newest lines of a limit, across segments, and says that there are more", () => {
    const { write, find, files, close, flush } = store({ mostBytes: 8 * 400 });
    for (let n = 0; n < 12; n += 1) {
      write({ correlation_id: "the-same-id", msg: `${n}`, filling: "x".repeat(100) });
      flush();
    }
    expect(files().length).toBeGreaterThan(2);
    const { lines, truncated } = find({ ids: ["the-same-id"], limit: 7 });
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      "5",
      "6",
      "7",
      "8",
      "9",
      "10",
      "11",
    ]);
    expect(truncated).toBe(true);
    close();
  });

  it("DASH-08 stays within its size: the oldest segment goes first", () => {
    const mostBytes = 64 * 1024;
    const { write, messages, directory, close, flush } = store({ mostBytes });
    const longest = 300;
    for (let n = 0; n < 3_000; n += 1) {
      write({ correlation_id: "the-same-id", msg: `${n}`, filling: "x".repeat(n % 150) });
      if (n % 10 === 0) flush();
    }
    flush();
    const bytes = readdirSync(directory)
      .filter((name) => name.endsWith(".jsonl"))
      .reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
    expect(bytes).toBeLessThanOrEqual(mostBytes + 8 * 10 * longest);
    const left = messages("the-same-id", 3_000).map(Number);
    expect(left.at(-1)).toBe(2_999);
    expect(left.length).toBeLessThan(1_000);
    expect(left).toEqual(left.toSorted((x, y) => x - y));
    close();
  });

  it("DASH-08 shows nothing older than it keeps, by the time on the line", () => {
    const { write, messages, pass, find, close, flush } = store();
    write({ correlation_id: "the-same-id", msg: "old" });
    flush();
    pass(DAY / 2);
    write({ correlation_id: "the-same-id", msg: "newer" });
    expect(messages("the-same-id")).toEqual(["old", "newer"]);
    const since = START + DAY / 4;
    expect(find({ ids: ["the-same-id"], since, limit: 9 }).lines).toHaveLength(1);
    expect(find({ ids: ["the-same-id"], until: since, limit: 9 }).lines).toHaveLength(1);
    pass(DAY / 2 + 1);
    expect(messages("the-same-id")).toEqual(["newer"]);
    close();
  });

  it("DASH-08 is found again after a restart, also without its index and after a torn line", () => {
    const first = store();
    first.write({ correlation_id: "before-the-crash", msg: "kept" });
    first.flush();
    const [name = ""] = first.files();
    // As after kill -9: no index, and half of a line.
    appendFileSync(
      join(first.directory, name),
      `{"time":"${new Date(START).toISOString()}","correlation_id":"torn-line-id","ms`,
    );
    const second = store({ directory: first.directory });
    expect(second.messages("before-the-crash")).toEqual(["kept"]);
    expect(second.messages("torn-line-id")).toEqual([]);
    second.write({ correlation_id: "before-the-crash", msg: "after" });
    expect(second.messages("before-the-crash")).toEqual(["kept", "after"]);
    second.close();
  });

  it("DASH-08 makes a damaged index again", () => {
    const first = store();
    first.write({ correlation_id: "kept-id-1", msg: "kept" });
    first.close();
    const second = store({ directory: first.directory });
    expect(second.messages("kept-id-1")).toEqual(["kept"]);
    const [index = ""] = readdirSync(first.directory).filter((name) => name.endsWith(".idx"));
    for (const damage of [
      () => truncateSync(join(first.directory, index), 9),
      () => writeFileSync(join(first.directory, index), Buffer.alloc(16, 7)),
      () => unlinkSync(join(first.directory, index)),
    ]) {
      damage();
      expect(second.messages("kept-id-1")).toEqual(["kept"]);
    }
    second.close();
  });

  it("DASH-08 finds every line of random ones by every id in it", () => {
    const ids = fc.constantFrom("id-number-1", "id-number-2", "id-number-3", "ähnlich-12");
    const line = fc.record({ correlation_id: ids, node_id: ids, msg: fc.string() });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), (lines) => {
        const { write, messages, close } = store({ mostBytes: 1024 * 1024 });
        for (const one of lines) write(one);
        for (const id of ["id-number-1", "id-number-2", "id-number-3"]) {
          const named = lines.filter(({ correlation_id, node_id }) => correlation_id === id || node_id === id);
          expect(messages(id)).toEqual(named.map(({ msg }) => msg));
        }
        close();
      }),
      { numRuns: 50 },
    );
  });

  it("AGENT-10 keeps a line as it was redacted, and the process's own secrets in no form", () => {
    const { directory, append, close, messages } = store({ now: Date.now });
    const kek = Buffer.alloc(32, 9).toString("base64");
    const log = createLog({
      ...{ process: "test", level: "info", destination: { write: () => undefined } },
      ...{ store: { append }, secrets: [kek, 'pass"word/1'] },
    });
    log.info(
      {
        correlation_id: "redacted-line",
        text: `key ${kek}, ${encodeURIComponent('pass"word/1')}`,
        other: 'pass"word/1',
      },
      `hft_${"x".repeat(43)}`,
    );
    expect(messages("redacted-line")).toEqual(["hft_[redacted]"]);
    close();
    const kept = readFileSync(
      join(directory, readdirSync(directory).find((name) => name.endsWith(".jsonl")) ?? ""),
      "utf8",
    );
    for (const secret of [kek, "word/1", "word%2F1", "x".repeat(43)]) expect(kept).not.toContain(secret);
  });

  it("DASH-08 returns the newest lines that fit, and says when it keeps none", () => {
    const { write, close, ...rest } = store();
    const own = { logs: { ...rest, append: rest.append, close }, settings: { HOLDFAST_X: "1" }, secrets: [] };
    for (let n = 0; n < 20; n += 1)
      write({ correlation_id: "large-lines", msg: `${n}`, filling: "x".repeat(200_000) });
    const request = { request_id: uuidv7(), ids: ["large-lines"], since: null, until: null, limit: 100 };
    const answer = answerLogRequest(own, request);
    expect(answer).toMatchObject({ kept: true, truncated: true, settings: { HOLDFAST_X: "1" } });
    expect(answer.lines.length).toBeLessThan(20);
    expect(answer.lines.at(-1)).toContain('"msg":"19"');
    expect(answerLogRequest({ ...own, logs: undefined }, request)).toMatchObject({ kept: false, lines: [] });
    close();
  });

  it("DASH-08 costs a log line little: prints microseconds without and with a store", () => {
    const { append, close } = store({ mostBytes: 64 * 1024 * 1024, now: Date.now });
    const line = { correlation_id: uuidv7(), method: "GET", route: "/v1/nodes/{node_id}", status: 200, ms: 1.3 };
    const measure = (log: ReturnType<typeof createLog>) => {
      const began = performance.now();
      for (let n = 0; n < 20_000; n += 1) log.info(line, "request");
      return ((performance.now() - began) / 20_000) * 1000;
    };
    const options = { process: "api", level: "info", destination: { write: () => undefined } };
    const [without, with_] = [createLog(options), createLog({ ...options, store: { append } })];
    const passes = [1, 2, 3, 4, 5].map(() => ({ without: measure(without), with: measure(with_) }));
    const began = performance.now();
    close();
    const written = ((performance.now() - began) / 100_000) * 1000;
    const median = (of: "without" | "with") => passes.map((pass) => pass[of]).toSorted((a, b) => a - b)[2] ?? 0;
    process.stdout.write(
      `a log line: ${median("without").toFixed(2)} µs without a store, ${median("with").toFixed(2)} µs with one, ` +
        `and ${written.toFixed(2)} µs when it is written and indexed, together with others\n`,
    );
    // No exact time: only that a line waits for no disk.
    expect(median("with")).toBeLessThan(median("without") * 3 + 20);
  });
});
