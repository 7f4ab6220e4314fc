// Requests to run steps on agents: dispatched, given to one agent, ended once.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { type ExecutionLab, eventOf, openExecutionLab, resultOf } from "../../testkit/api/executions.ts";

let lab: ExecutionLab;

beforeAll(async () => {
  lab = await openExecutionLab();
});

describe("a dispatch", () => {
  it("EXEC-02 is given to a connected agent, and its result ends it", async () => {
    const orgId = await lab.newOrg();
    const agent = await lab.newAgent({ orgId });
    const runId = uuidv7();
    const verdict = await lab.dispatch({ organizationId: orgId, runId });
    expect(verdict).toMatchObject({ state: "assigned", agent_id: agent.id, known: false });
    const requestId = `${runId}:step:1`;
    expect(await lab.row(requestId)).toMatchObject({
      status: "dispatched",
      generation: 1,
      session_id: agent.sessionId,
    });
    expect(await lab.report(eventOf("accepted", agent, requestId))).toEqual({ verdict: "accepted", stop: null });
    expect(await lab.row(requestId)).toMatchObject({ status: "running" });
    const result = resultOf(agent, requestId, 1);
    expect(await lab.report(result)).toEqual({ verdict: "accepted", stop: null });
    expect(await lab.row(requestId)).toMatchObject({ status: "succeeded", output: {} });
    expect(await lab.report(result)).toEqual({ verdict: "duplicate", stop: null });
    expect(await lab.miscounted()).toEqual([]);
  });
});
