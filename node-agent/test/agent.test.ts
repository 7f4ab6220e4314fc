// A whole agent against the API's faulty twin.

import { existsSync, readFileSync, renameSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { joinedDirectory, startTestAgent } from "./support/agent.ts";
import { newSigningKey, startFakeApi } from "./support/fake-api.ts";

describe("agent", () => {
  it("TASK-09 runs a task and delivers its result", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    const task = api.enqueue(api.sign({ task_type: "node.noop", params: { echo: "hello" } }));
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({
        generation: 1,
        outcome: { status: "succeeded", result: { echo: "hello" } },
      });
    expect(agent.logged()).not.toContain('"level":"error"');
  });
});
