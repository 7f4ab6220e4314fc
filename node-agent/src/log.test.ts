import { spawn } from "node:child_process";
import { once } from "node:events";
import { secretPrefix } from "@holdfast/contracts/secrets";
import { describe, expect, it } from "vitest";
import { createLog, type Log, type LogOptions } from "./log.ts";

function written(use: (log: Log) => void, options: LogOptions = {}): string {
  const lines: string[] = [];
  use(createLog({ level: "debug", journald: false, ...options, write: (line) => lines.push(line) }));
  return lines.join("");
}

const canary = "CANARY0canary1CANARY2canary3CANARY4canary5x";

describe("the agent's log", () => {
  it("AGENT-01 is one JSON object a line, with level, time and fields", () => {
    const text = written((log) => log.warn("first\nline", { task_id: "t", level: "none" }), {
      fields: { node: "n" },
    });
    expect(text.endsWith("}\n")).toBe(true);
    expect(JSON.parse(text)).toMatchObject({
      level: "warn",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      process: "agent",
      node: "n",
      task_id: "t",
      msg: "first\nline",
    });
  });

  it("AGENT-01 begins with the syslog level where journald reads it", () => {
    const use = (log: Log) => {
      for (const level of ["debug", "info", "warn", "error"] as const) log[level]("x");
    };
    const starts = (options: LogOptions) =>
      written(use, options)
        .trim()
        .split("\n")
        .map((line) => line.slice(0, 3));
    expect(starts({ journald: true })).toEqual(["<7>", "<6>", "<4>", "<3>"]);
    expect(starts({ journald: true, level: "warn" })).toEqual(["<4>", "<3>"]);
    expect(starts({})).toEqual(Array(4).fill('{"l'));
  });

  it.for(Object.values(secretPrefix))("AGENT-10 shows no secret %s…, wherever it stands", (prefix) => {
    const secret = prefix + canary;
    const text = written((log) => {
      log.info(`in a message ${secret}`, { deep: [{ deeper: `a\n${secret}` }], [secret]: 1 });
      log.error("failed", { error: new Error(secret, { cause: new Error(`because of ${secret}`) }) });
    });
    expect(text).not.toContain(canary);
    expect(text).toContain(`${prefix}[redacted]`);
  });

  it("AGENT-10 shows no field that is named like a secret, however deep", () => {
    const text = written((log) => {
      log.info("fields", {
        password: canary,
        deep: { token: [canary], keyPem: canary, kek: Buffer.from(canary) },
      });
      log.info("beside", { key_id: "seen" });
    });
    expect(text).not.toContain(canary);
    expect(text).not.toContain(Buffer.from(canary).toJSON().data.slice(0, 6).join());
    expect(text).toContain("seen");
  });

  it("AGENT-01 shows errors with their code, and survives what is no JSON", () => {
    const ring: Record<string, unknown> = {};
    ring["self"] = ring;
    const text = written((log) => {
      log.error("gone", { error: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
      log.error("ring", { ring });
      log.info("big", { big: 1n });
    });
    const [gone, rest, big] = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(gone.error).toMatchObject({ message: "refused", code: "ECONNREFUSED", stack: expect.any(String) });
    expect(rest).toMatchObject({ level: "error", msg: "ring" });
    expect(big.big).toBe("1");
  });

  it("AGENT-01 a reader who goes away does not end the agent", async () => {
    const program = `
      import { createLog } from "${new URL("log.ts", import.meta.url).href}";
      const log = createLog();
      log.info("first");
      process.stdin.once("data", () => {
        log.info("into the void");
        setImmediate(() => setImmediate(() => { log.info("again"); process.exitCode = 7; process.stdin.destroy(); }));
      });`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const exit = once(child, "exit");
    await once(child.stdout, "data");
    child.stdout.destroy();
    child.stdin.write("go\n");
    expect(await exit).toEqual([7, null]);
  });
});
