// What agents report about requests, and how requests end: results, deadlines, secrets, output, and what is kept of them.

import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import type { ExecutionEvent } from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  declinedOf,
  type ExecutionLab,
  eventOf,
  type LabAgent,
  lapse,
  openExecutionLab,
  resultOf,
  shellPayload,
} from "../../testkit/api/executions.ts";
import { eraseResults, removeOldExecutions } from "../src/executions/erase.ts";
import { MOST_CHUNKS, MOST_OUTPUT_BYTES } from "../src/executions/output.ts";
import { recountInFlight } from "../src/executions/recount.ts";
import { DID_NOT_RUN } from "../src/executions/transitions/accept-results.ts";

let lab: ExecutionLab;
/** Every test has an organization of its own. */
let orgId: string;
const nobody = { publish: () => undefined };

beforeAll(async () => {
  lab = await openExecutionLab();
});
beforeEach(async () => {
  orgId = await lab.newOrg();
});

const newAgent = (options: Parameters<ExecutionLab["newAgent"]>[0] = {}) => lab.newAgent({ orgId, ...options });
const dispatch = (
  changes: Parameters<ExecutionLab["dispatch"]>[0] = {},
  options: Parameters<ExecutionLab["dispatch"]>[1] = {},
) => lab.dispatch({ organizationId: orgId, ...changes }, options);
const connectionOf = ({ id, sessionId, protocolVersion, journalId }: LabAgent) => ({
  agentId: id,
  sessionId,
  protocolVersion,
  journalId,
});
const take = (agent: LabAgent) => lab.replica.engine.takeWork(connectionOf(agent), { again: false, holding: [] });
const inFlightOf = async ({ id }: LabAgent) =>
  (await lab.superuser<{ in_flight: number }[]>`SELECT in_flight FROM execution_agents WHERE id = ${id}`)[0]
    ?.in_flight;

describe("a result", () => {
  it("EXEC-04 is told to other gateways that asked for the request, and to no other", async () => {
    const elsewhere = uuidv7();
    const agent = await newAgent();
    const runId = uuidv7();
    const [own, asked] = [await dispatch(), await dispatch({ runId })];
    await dispatch({ runId }, { asking: elsewhere });
    for (const { request_id } of [own, asked]) await lab.report(resultOf(agent, request_id, 1));
    await expect
      .poll(() => lab.replica.news)
      .toContainEqual({ type: "execution_ended", request_id: asked.request_id });
    expect(lab.replica.news).not.toContainEqual({ type: "execution_ended", request_id: own.request_id });
  });

  it("SEC-01 of an agent that does not have the request is unknown, whatever it names", async () => {
    const agent = await newAgent();
    const stranger = await lab.newAgent({ orgId: await lab.newOrg() });
    const colleague = await newAgent({ tags: ["idle"] });
    const { request_id } = await dispatch({ selectorAgentId: agent.id });
    const before = await lab.row(request_id);
    const progress = { type: "progress" as const, message: "x", percent: null };
    const log = { type: "log" as const, seq: 1, stream: "stdout" as const, text: "x" };
    for (const other of [stranger, colleague]) {
      const named = { request_id, agent_id: other.id, session_id: other.sessionId, generation: 1 };
      const events: ExecutionEvent[] = [
        ...[
          resultOf(other, request_id, 1),
          resultOf(other, request_id, null),
          eventOf("accepted", other, request_id),
        ],
        ...[declinedOf(other, request_id), { ...named, ...progress }],
      ];
      for (const event of events) expect(await lab.report(event)).toEqual({ verdict: "unknown", stop: null });
      await lab.report({ ...named, ...log });
    }
    expect(await lab.row(request_id)).toEqual(before);
    expect(await lab.superuser`SELECT FROM execution_output WHERE org_id = ${orgId}`).toHaveLength(0);
    expect(await lab.report(resultOf(agent, "nobody:knows:1", 1))).toMatchObject({ verdict: "unknown" });
  });

  it("SEC-01 of an agent that does not have it does not hide what its own agent reports in the same moment", async () => {
    const agent = await newAgent();
    const stranger = await lab.newAgent({ orgId: await lab.newOrg() });
    const { request_id } = await dispatch();
    const events = [resultOf(stranger, request_id, 1), eventOf("accepted", agent, request_id)];
    expect(await lab.replica.engine.report(lab.gatewayId, events)).toMatchObject([
      { verdict: "unknown" },
      { verdict: "accepted" },
    ]);
    expect(await lab.row(request_id)).toMatchObject({ status: "running" });
  });

  it("EXEC-02 of a request that was not sent to its agent yet is evidence only", async () => {
    const agent = await newAgent({ protocolVersion: 0 });
    const { request_id } = await dispatch({}, { asking: uuidv7() });
    expect(await lab.report(resultOf(agent, request_id, null))).toMatchObject({ verdict: "late" });
    expect(await lab.row(request_id)).toMatchObject({ status: "dispatched", agent_id: agent.id });
    expect(await take(agent)).toHaveLength(1);
    expect(await lab.report(resultOf(agent, request_id, null))).toMatchObject({ verdict: "accepted" });
  });

  it("EXEC-05 of a shell task without an exit code is a failure: the agent did not run it", async () => {
    const agent = await newAgent({ protocolVersion: 0 });
    for (const output of [undefined, null, {}, { exitCode: null }, { exitCode: "0" }, { accepted: true }]) {
      const { request_id } = await dispatch({ payload: shellPayload });
      const result = { status: "succeeded" as const, ...(output === undefined ? {} : { output }) };
      expect(await lab.report(resultOf(agent, request_id, null, result))).toMatchObject({ verdict: "accepted" });
      expect(await lab.row(request_id)).toMatchObject({
        ...{ status: "failed", error: "NODE_EXECUTION_FAILED" },
        output: { message: DID_NOT_RUN, reported: output ?? null },
      });
    }
    const { request_id } = await dispatch({ payload: shellPayload });
    await lab.report(resultOf(agent, request_id, null, { status: "succeeded", output: { exitCode: 0 } }));
    expect(await lab.row(request_id)).toMatchObject({ status: "succeeded", output: { exitCode: 0 } });
  });

  it("EXEC-05 keeps an agent's own error, and has one where the agent gave none", async () => {
    const agent = await newAgent();
    for (const [error, stored] of [
      ["DISK_FULL", "DISK_FULL"],
      [undefined, "NODE_EXECUTION_FAILED"],
    ] as const) {
      const { request_id } = await dispatch();
      await lab.report(resultOf(agent, request_id, 1, { status: "failed", ...(error ? { error } : {}) }));
      expect(await lab.row(request_id)).toMatchObject({ status: "failed", error: stored });
    }
  });

  it("EXEC-04 that is too large or too deep ends the request with a message instead", async () => {
    const agent = await newAgent();
    let deep: unknown = 1;
    for (let level = 0; level < 200; level += 1) deep = [deep];
    for (const output of ["x".repeat(1024 * 1024 + 1), deep]) {
      const { request_id } = await dispatch();
      expect(await lab.report(resultOf(agent, request_id, 1, { status: "succeeded", output }))).toMatchObject({
        verdict: "accepted",
      });
      expect(await lab.row(request_id)).toMatchObject({
        status: "failed",
        output: { message: expect.stringContaining("not stored") },
      });
    }
  });

  it("EXEC-02 of one report ends the request together with what it says before", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch();
    const named = { request_id, agent_id: agent.id, session_id: agent.sessionId, generation: 1 };
    const verdicts = await lab.replica.engine.report(lab.gatewayId, [
      eventOf("accepted", agent, request_id),
      { type: "log", ...named, seq: 1, stream: "stdout", text: "hello" },
      resultOf(agent, request_id, 1),
      resultOf(agent, request_id, 1),
    ]);
    expect(verdicts.map(({ verdict }) => verdict)).toEqual(["accepted", "accepted", "accepted", "duplicate"]);
    expect(await lab.superuser`SELECT text FROM execution_output WHERE org_id = ${orgId}`).toEqual([
      { text: "hello" },
    ]);
  });
});

describe("a deadline", () => {
  const overdue = async (agent: LabAgent, prepare: () => Promise<unknown>) => {
    const { request_id } = await dispatch({ selectorAgentId: agent.id });
    await prepare();
    await lapse(lab.superuser, request_id, "deadline_at");
    await lab.replica.engine.sweep();
    return request_id;
  };

  it("EXEC-05 ends the request as timed out while its agent is connected, and as disconnected otherwise", async () => {
    const agent = await newAgent();
    const connected = await overdue(agent, async () => undefined);
    expect(await lab.row(connected)).toMatchObject({ status: "failed", error: "NODE_EXECUTION_TIMEOUT" });
    const gone = await overdue(agent, () => lab.disconnect(agent));
    expect(await lab.row(gone)).toMatchObject({ status: "failed", error: "AGENT_DISCONNECTED" });
    await lab.connect(agent);
    const silent = await overdue(
      agent,
      () =>
        lab.superuser`UPDATE execution_agents SET session_seen_at = now() - interval '71 seconds' WHERE id = ${agent.id}`,
    );
    expect(await lab.row(silent)).toMatchObject({ status: "failed", error: "AGENT_DISCONNECTED" });
    for (const error of ["NODE_EXECUTION_TIMEOUT", "AGENT_DISCONNECTED"])
      expect(executionOutcomes).toHaveProperty(error);
    expect(await inFlightOf(agent)).toBe(0);
  });

  it("EXEC-04 keeps the result that comes after it as evidence", async () => {
    const agent = await newAgent();
    const request_id = await overdue(agent, async () => undefined);
    const before = await lab.row(request_id);
    for (let time = 0; time < 2; time += 1)
      expect(await lab.report(resultOf(agent, request_id, 1))).toEqual({ verdict: "late", stop: null });
    expect(await lab.row(request_id)).toEqual(before);
    expect(await lab.superuser`SELECT status FROM execution_late_results WHERE org_id = ${orgId}`).toEqual([
      { status: "succeeded" },
    ]);
  });
});

describe("a secret", () => {
  const sealedOf = async (requestId: string) => (await lab.row(requestId)).sealed_secret;

  it("SEC-03 is stored sealed until its agent has accepted the request", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch({ secret: "s3cret" });
    const sealed = await sealedOf(request_id);
    expect(sealed).not.toBeNull();
    expect(sealed?.toString("latin1")).not.toContain("s3cret");
    await lab.report(eventOf("accepted", agent, request_id));
    expect(await sealedOf(request_id)).toBeNull();
  });

  it("SEC-03 cannot be moved to another request", async () => {
    const agent = await newAgent();
    const [one, two] = [await dispatch({ secret: "one" }), await dispatch({ secret: "two" })];
    await lab.superuser`
      UPDATE executions SET sealed_secret = (SELECT sealed_secret FROM executions WHERE request_id = ${one.request_id})
      WHERE request_id = ${two.request_id}`;
    await lab.connect(agent);
    const again = lab.replica.engine.takeWork(connectionOf(agent), { again: true, holding: [one.request_id] });
    await expect(again).rejects.toThrow();
  });

  it("SEC-03 is not stored for an agent of another system that was sent it", async () => {
    const agent = await newAgent({ protocolVersion: 0 });
    const { request_id } = await dispatch({ secret: "s3cret" });
    expect(await sealedOf(request_id)).toBeNull();
    const elsewhere = await dispatch({ secret: "later" }, { asking: uuidv7() });
    expect(await take(agent)).toMatchObject([{ secret: "later" }]);
    expect(await sealedOf(elsewhere.request_id)).toBeNull();
  });

  it("SEC-03 is erased when the request ends, however it does", async () => {
    const { request_id } = await dispatch({ secret: "s3cret" });
    expect(await sealedOf(request_id)).toBeNull();
    const agent = await newAgent();
    const given = await dispatch({ secret: "s3cret" });
    await lapse(lab.superuser, given.request_id, "deadline_at");
    await lab.replica.engine.sweep();
    expect(await sealedOf(given.request_id)).toBeNull();
    expect(await inFlightOf(agent)).toBe(0);
  });
});

describe("output", () => {
  const log = (agent: LabAgent, request_id: string, seq: number, text: string): ExecutionEvent => ({
    ...{ type: "log", request_id, agent_id: agent.id, session_id: agent.sessionId, generation: 1 },
    ...{ seq, stream: seq % 2 === 0 ? "stderr" : "stdout", text },
  });

  it("EXEC-02 is stored once for each piece, in their order, and not after the end", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch();
    for (const seq of [2, 1, 2]) await lab.report(log(agent, request_id, seq, `piece ${seq}`));
    await lab.report(resultOf(agent, request_id, 1));
    await lab.report(log(agent, request_id, 3, "late"));
    const { id } = await lab.row(request_id);
    expect(
      await lab.superuser`SELECT seq, stream, text FROM execution_output WHERE execution_id = ${id} ORDER BY seq`,
    ).toEqual([
      { seq: 1, stream: "stdout", text: "piece 1" },
      { seq: 2, stream: "stderr", text: "piece 2" },
    ]);
  });

  it("EXEC-02 is bounded for each request", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch();
    const stored = async () =>
      (await lab.superuser`SELECT count(*)::int AS n FROM execution_output WHERE org_id = ${orgId}`)[0]?.["n"];
    await lab.superuser`UPDATE executions SET output_chunks = ${MOST_CHUNKS - 1} WHERE request_id = ${request_id}`;
    for (const seq of [1, 2]) await lab.report(log(agent, request_id, seq, "x"));
    expect(await stored()).toBe(1);
    await lab.superuser`
      UPDATE executions SET output_chunks = 0, output_bytes = ${MOST_OUTPUT_BYTES} WHERE request_id = ${request_id}`;
    await lab.report(log(agent, request_id, 3, "x"));
    expect(await stored()).toBe(1);
  });

  it("EXEC-04 and results are erased when their time is over; the row stays, and the request is not run again", async () => {
    const agent = await newAgent();
    const runId = uuidv7();
    const { request_id } = await dispatch({ runId });
    await lab.report(log(agent, request_id, 1, "printed"));
    await lab.report(resultOf(agent, request_id, 1, { status: "succeeded", output: { secret: 1 } }));
    await eraseResults(lab.system, nobody, { afterSeconds: 900 });
    expect(await lab.row(request_id)).toMatchObject({ output: { secret: 1 } });
    await lab.superuser`UPDATE executions SET finished_at = now() - interval '901 seconds' WHERE request_id = ${request_id}`;
    await eraseResults(lab.system, nobody, { afterSeconds: 900 });
    expect(await lab.row(request_id)).toMatchObject({ status: "succeeded", output: null, payload: null });
    expect(await lab.superuser`SELECT FROM execution_output WHERE org_id = ${orgId}`).toHaveLength(0);
    expect(await lab.replica.engine.results([request_id])).toEqual([]);
    expect(await dispatch({ runId })).toMatchObject({
      ...{ state: "refused", message: expect.stringContaining("its result was erased") },
      next_step: expect.stringContaining("higher attemptCount"),
    });
  });

  it("EXEC-04 of requests that ended long ago is removed with them", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch();
    await lab.report(log(agent, request_id, 1, "printed"));
    await lab.report(resultOf(agent, request_id, 1));
    await lab.superuser`UPDATE executions SET finished_at = now() WHERE request_id = ${request_id}`;
    const later = (days: number) => new Date(Date.now() + days * 86_400_000);
    await removeOldExecutions(lab.system, { days: 30, now: later(29) });
    expect(await lab.row(request_id)).toMatchObject({ status: "succeeded" });
    await removeOldExecutions(lab.system, { days: 30, now: later(31) });
    await expect(lab.row(request_id)).rejects.toThrow("there is no request");
    expect(await lab.superuser`SELECT FROM execution_output WHERE org_id = ${orgId}`).toHaveLength(0);
  });
});

describe("progress", () => {
  it("EXEC-02 is kept with the request and renews its lease; of a cancelled one the agent is told to stop", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch();
    const progress: ExecutionEvent = {
      ...{ type: "progress", request_id, agent_id: agent.id, session_id: agent.sessionId, generation: 1 },
      ...{ message: "half way", percent: 50 },
    };
    expect(await lab.report(progress)).toEqual({ verdict: "accepted", stop: null });
    expect(await lab.row(request_id)).toMatchObject({
      status: "running",
      progress: { message: "half way", percent: 50 },
    });
    await lab.superuser`UPDATE executions SET cancel_requested_at = now() WHERE request_id = ${request_id}`;
    expect(await lab.report(progress)).toEqual({ verdict: "late", stop: "cancelled" });
    expect(await lab.replica.engine.announcements.unfinished()).toContainEqual({
      ...{ type: "stop_execution", agent_id: agent.id, session_id: agent.sessionId, request_id, generation: 1 },
      reason: "cancelled",
    });
  });
});

describe("counting what is in flight", () => {
  it("EXEC-03 is corrected where it is wrong, and only there", async () => {
    const [right, wrong] = [await newAgent(), await newAgent()];
    await dispatch({ selectorAgentId: right.id });
    await lab.superuser`UPDATE execution_agents SET in_flight = 5 WHERE id = ${wrong.id}`;
    expect(await recountInFlight(lab.system, nobody, lab.log)).toEqual({ corrected: 1 });
    expect([await inFlightOf(right), await inFlightOf(wrong)]).toEqual([1, 0]);
  });
});
