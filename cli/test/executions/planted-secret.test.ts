// A planted secret is found in a build that leaks it in every way, and nowhere in this one.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { copyRepository } from "../../../testkit/tasks/repository-copy.ts";
import { findPlanted, type Sink, sinks } from "../support/planted-secret.ts";

type Leak = { file: string; old: string; leaky: string; into: readonly Sink[] };

/** Each change opens one way out. */
const leaks: Leak[] = [
  {
    file: "node-agent/src/execution/executions.ts",
    old: 'log.info("step started", { request_id: requestId,',
    leaky: 'log.info("step started", { note: frame.secret, request_id: requestId,',
    into: ["logs"],
  },
  {
    file: "node-agent/src/execution/executions.ts",
    old: "const redaction = createRedaction(secrets);",
    leaky: "const redaction = createRedaction(secrets.slice(0, 0));",
    into: ["results", "database", "database files"],
  },
  {
    file: "control-plane/src/secrets/use.ts",
    old: "version: stored.version,\n      },",
    leaky: "version: stored.version, value,\n      },",
    into: ["audit"],
  },
  {
    file: "gateway/src/execution/dispatch/routes.ts",
    old: "    onOutcome(outcome);",
    leaky: "    onOutcome(body.secret ?? outcome);",
    into: ["metrics"],
  },
  {
    file: "node-agent/src/drivers/sandbox/bubblewrap/process.ts",
    old: '"-c", PROGRAM], {\n    ...{ cwd: "/", env: {},',
    leaky: '"-c", PROGRAM, order.secret ?? ""], {\n    ...{ cwd: "/", env: { LEAK: order.secret ?? "" },',
    into: ["arguments", "environments"],
  },
  {
    file: "node-agent/src/drivers/sandbox/bubblewrap/process.ts",
    old: "ulimit -c 0; ",
    leaky: "",
    into: [],
  },
  {
    // One directory of the host for all runs.
    file: "node-agent/src/drivers/sandbox/bubblewrap/arguments.ts",
    old: '...["--perms", "0700", "--size", `${limits.diskBytes}`, "--tmpfs", "/work"],',
    leaky: '...["--bind", process.env["SHARED_BY_RUNS"] ?? "", "/work"],',
    into: ["later runs", "files", "core files"],
  },
];

describe.skipIf(lacks("root") || lacks("bubblewrap"))("a planted secret", () => {
  it("SEC-02 AGENT-10 is found nowhere but in its own step", async () => {
    expect(await findPlanted()).toEqual({});
  }, 600_000);

  it("SEC-02 AGENT-10 is found in a build that leaks it, wherever that leaks it", async () => {
    const copy = await copyRepository();
    for (const { file, old, leaky } of leaks) {
      const path = join(copy.path, file);
      const text = readFileSync(path, "utf8");
      expect([file, text.split(old).length]).toEqual([file, 2]);
      writeFileSync(
        path,
        text.replace(old, () => leaky),
      );
    }
    const found = await findPlanted({ command: join(copy.path, "cli/bin/holdfast.mjs") });
    expect(new Set(leaks.flatMap(({ into }) => into))).toEqual(new Set(sinks));
    expect(Object.keys(found).sort()).toEqual([...sinks].sort());
  }, 900_000);
});
