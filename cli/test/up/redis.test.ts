// An installation whose gateway is given a Redis that does not run.

import { afterAll, expect, it } from "vitest";
import { openInstallation } from "../../../testkit/processes/holdfast.ts";

const installation = openInstallation();
afterAll(() => installation.cleanUp());

it("TERM-07 runs, and `holdfast status` reports that Redis is unreachable, as a warning", async () => {
  await installation.up({ HOLDFAST_UP_AGENT: "no", REDIS_URL: "redis://:geheim@127.0.0.1:1" }).ready;
  const { code, stdout } = await installation.run(["status", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    gateway: { ok: true, warning: "terminal_binding_unavailable: Redis is unreachable" },
  });
  const { stdout: table } = await installation.run(["status"]);
  expect(table).toMatch(/gateway +▲ warning +terminal_binding_unavailable: Redis is unreachable/);
  expect(stdout + table).not.toContain("geheim");
});
