import { secretPrefix } from "@holdfast/contracts/secrets";
import { describe, expect, it } from "vitest";
import { createLog, type Log } from "./log.ts";

/** Everything that a use of the log writes, as one text. */
function written(use: (log: Log) => void): string {
  const lines: string[] = [];
  use(createLog({ process: "test", level: "trace", destination: { write: (line) => lines.push(line) } }));
  return lines.join("");
}

const canary = "CANARY0canary1CANARY2canary3CANARY4canary5x";
const secretFields = ["password", "token", "secret", "authorization", "cookie", "set-cookie", "kek", "key"];

function nested(depth: number, inner: object): object {
  return depth === 0 ? inner : { level: nested(depth - 1, inner) };
}

describe("the log", () => {
  it("AUDIT-03 is one JSON object a line, with time, level and process", () => {
    const lines = written((log) => {
      log.info({ correlation_id: "abc" }, "first");
      log.warn("second\nwith a break");
    });
    const [first, second, rest] = lines.split("\n");
    expect(JSON.parse(first ?? "")).toMatchObject({
      level: "info",
      process: "test",
      pid: process.pid,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      correlation_id: "abc",
      msg: "first",
    });
    expect(JSON.parse(second ?? "")).toMatchObject({ level: "warn", msg: "second\nwith a break" });
    expect(rest).toBe("");
  });

  it.for(secretFields)("AUDIT-03 shows no field %s, however deep it lies", (field) => {
    for (const depth of [0, 1, 2, 3, 6]) {
      const lines = written((log) =>
        log.info(nested(depth, { [field]: canary, beside: "seen" }), "with a secret"),
      );
      expect(lines, `${depth} deep`).not.toContain(canary);
      expect(lines, "what stands beside it stays").toContain("seen");
      expect(() => JSON.parse(lines)).not.toThrow();
    }
  });

  it("AUDIT-03 shows no secret field that is more than text", () => {
    const lines = written((log) => {
      log.info({ kek: Buffer.from(canary), "set-cookie": [canary], headers: { cookie: [canary] } });
    });
    expect(lines).not.toContain(canary);
    expect(lines).not.toContain(Buffer.from(canary).toJSON().data.slice(0, 8).join(","));
  });

  it("AUDIT-03 shows no value that holds quotes and backslashes in part", () => {
    const lines = written((log) => log.info(nested(5, { password: `a"b\\${canary}","x":"\\` }), "hard to cut"));
    expect(lines).not.toContain(canary);
    expect(() => JSON.parse(lines)).not.toThrow();
  });

  it.for(Object.entries(secretPrefix))("AUDIT-03 shows no secret of the kind %s anywhere", ([, prefix]) => {
    const secret = prefix + canary;
    const lines = written((log) => {
      log.info(`in a message: ${secret}`);
      log.info({ note: secret, deep: [{ deeper: [`a\n${secret}`] }] }, "in fields");
      log.info({ [secret]: "as a name" });
      log.info({ url: `https://holdfast.example.com/links#${secret}` });
      log.error({ err: new Error(`no such link\n${secret}`, { cause: new Error(secret) }) }, "in an error");
      log.error(Object.assign(new Error("refused"), { detail: { request: secret } }));
      log.child({ session: secret }).info("in a child's bindings");
    });
    expect(lines).not.toContain(canary);
    expect(lines).toContain(`${prefix}[redacted]`);
  });

  it("AUDIT-03 shows no password of a connection URL and no credentials of a header", () => {
    const lines = written((log) => {
      log.error({ err: new Error(`connect postgres://me:${canary}@db:5432/x failed`) });
      log.info({ target: { url: `redis://:${canary}@cache` } });
      log.info(`sent authorization: Bearer ${canary}`);
      log.info({ line: `first\nBasic ${canary}` });
    });
    expect(lines).not.toContain(canary);
    expect(lines).toContain("postgres://me:[redacted]@db:5432/x");
  });

  it("AUDIT-03 cuts an error that repeats what somebody sent, and no secret in it gets out in halves", () => {
    const secret = `postgres://me:${canary.repeat(100)}@db/x`;
    const lines = written((log) => log.error({ err: new Error(`'${secret}' ${"x".repeat(100_000)}`) }, "failed"));
    expect(lines.length).toBeLessThan(12_000);
    expect(lines).toContain("(cut)");
    expect(lines).not.toContain(canary);
  });
});
