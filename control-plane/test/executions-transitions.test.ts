// The transition table of executions, executed: every event is made to happen to a real row in every status, and what comes
// of it is compared with a table that is written down here, apart from the one that the statements are built from.

import { type ExecutionState, executionStates } from "@holdfast/contracts/endpoints/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import {
  declinedOf,
  type ExecutionLab,
  eventOf,
  type LabAgent,
  lapse,
  openExecutionLab,
  resultOf,
} from "../../testkit/api/executions.ts";
import { holdAgent, markRevoked } from "../src/agents/queries.ts";
import { withOrg } from "../src/database/connect.ts";
import { cancelRequest } from "../src/executions/transitions/cancel.ts";
import { endWaits } from "../src/executions/transitions/expire.ts";
import { takeFromAgent } from "../src/executions/transitions/revoke.ts";
import {
  type ExecutionEvent,
  endedStatuses,
  executionEvents,
  executionTable,
  statusesInFlight,
} from "../src/executions/transitions/table.ts";

let lab: ExecutionLab;

beforeAll(async () => {
  lab = await openExecutionLab();
});

/** A status that is the row's next one; or `renewed`, `stop`, `late`, `dup`; `-` for nothing, `x` where no row can be. */
const expected: Record<ExecutionEvent, string> = {
  //                    pending     dispatched  running    succeeded  failed  cancelled  unplaced
  assign: "             dispatched  -           -          -          -       -          -",
  again: "              dup         dup         dup        dup        dup     dup        pending",
  accept: "             x           running     renewed    x          stop    stop       x",
  hold: "               x           renewed     renewed    x          stop    stop       x",
  hold_stale: "         stop        stop        stop       stop       stop    stop       stop",
  hold_repeated: "      x           x           x          -          -       -          x",
  decline: "            x           pending     failed     -          -       -          x",
  decline_cancelled: "  x           cancelled   cancelled  -          -       -          x",
  decline_stale: "      -           -           -          -          -       -          -",
  result_succeeded: "   x           succeeded   succeeded  x          late    late       x",
  result_failed: "      x           failed      failed     x          late    late       x",
  result_cancelled: "   x           cancelled   cancelled  x          late    late       x",
  result_stale: "       late        late        late       late       late    late       late",
  result_repeated: "    x           x           x          dup        dup     dup        x",
  cancel: "             cancelled   stop        stop       -          -       -          -",
  cancel_unsent: "      cancelled   cancelled   x          -          -       -          -",
  wait_over: "          unplaced    -           -          -          -       -          -",
  deadline: "           -           failed      failed     -          -       -          -",
  deadline_cancelled: " -           cancelled   cancelled  -          -       -          -",
  revoke: "             -           failed      failed     -          -       -          -",
  revoke_unsent: "      -           pending     x          -          -       -          -",
};

const cells = executionStates.flatMap((status, column) =>
  executionEvents.map((event) => ({ status, event, outcome: expected[event].trim().split(/\s+/)[column] ?? "" })),
);

describe("the table", () => {
  it("EXEC-02 has a cell for every event in every status", () => {
    expect(cells).toHaveLength(executionStates.length * executionEvents.length);
    expect(Object.keys(executionTable).toSorted()).toEqual([...executionStates].toSorted());
    for (const status of executionStates)
      expect(Object.keys(executionTable[status]).toSorted()).toEqual([...executionEvents].toSorted());
  });

  it("EXEC-02 leaves an end only when a request that no agent took is dispatched again", () => {
    expect(statusesInFlight).toEqual(["dispatched", "running"]);
    const leaving = endedStatuses.flatMap((status) =>
      executionEvents
        .filter((event) => typeof executionTable[status][event] === "object")
        .map((event) => [status, event]),
    );
    expect(leaving).toEqual([["unplaced", "again"]]);
  });

  it("EXEC-02 succeeds by results only", () => {
    for (const status of executionStates)
      for (const event of executionEvents) {
        const outcome = executionTable[status][event];
        if (typeof outcome === "object" && outcome.to === "succeeded") expect(event).toBe("result_succeeded");
      }
  });
});

type TestRequest = { orgId: string; agent: LabAgent; runId: string; requestId: string };
const elsewhere = uuidv7();

/** A row in the status, as the engine would have left it. It was with `agent` once. */
async function rowIn(
  status: ExecutionState,
  { reported, unsent }: { reported: boolean; unsent: boolean },
): Promise<TestRequest> {
  const orgId = await lab.newOrg();
  const agent = await lab.newAgent({ orgId });
  const runId = uuidv7();
  const requestId = `${runId}:step:1`;
  const waits = status === "pending" ? { waitMs: 60_000 } : {};
  await lab.dispatch({ organizationId: orgId, runId, ...waits }, unsent ? { asking: elsewhere } : {});
  const request = { orgId, agent, runId, requestId };
  const result = (one: "succeeded" | "failed") => lab.report(resultOf(agent, requestId, 1, { status: one }));
  if (status === "pending" || status === "unplaced") {
    await lab.report(declinedOf(agent, requestId));
    await lab.disconnect(agent);
    if (status === "unplaced") await happen("wait_over", request);
  }
  if (status === "running") await lab.report(eventOf("accepted", agent, requestId));
  if (status === "succeeded") await result("succeeded");
  if (status === "cancelled") await cancel(request);
  if (status === "failed" || status === "cancelled") {
    if (reported) await result("failed");
    else await happen("deadline", request);
  }
  expect((await lab.row(requestId)).status).toBe(status);
  return request;
}

const cancel = async ({ orgId, requestId }: TestRequest) => {
  const { id } = await lab.row(requestId);
  const cancelled = await withOrg(lab.app, orgId, (tx) => cancelRequest(tx, id));
  if (cancelled) lab.replica.engine.cancelled(cancelled, orgId);
  return cancelled;
};

/** What the agent or the caller was answered. */
async function happen(event: ExecutionEvent, request: TestRequest): Promise<string | undefined> {
  const { orgId, agent, runId, requestId } = request;
  const { id, generation, status, agent_id } = await lab.row(requestId);
  // Without an agent, the delivery that was declined is an older one, too.
  const stale = agent_id === null ? generation : generation + 1;
  const answered = async (sent: Promise<{ verdict: string; stop: string | null }>) => {
    const { verdict, stop } = await sent;
    return stop === null ? verdict : "stop";
  };
  const cancelled = () => lab.superuser`UPDATE executions SET cancel_requested_at = now() WHERE id = ${id}`;
  switch (event) {
    case "assign":
      await lab.newAgent({ orgId });
      await lab.replica.engine.sweep();
      return undefined;
    case "again": {
      const verdict = await lab.dispatch({ organizationId: orgId, runId, waitMs: 60_000 });
      const known = verdict.state === "ended" || ("known" in verdict && verdict.known);
      return known ? "dup" : verdict.state;
    }
    case "accept":
    case "hold_repeated":
      return answered(lab.report(eventOf("renewed", agent, requestId, generation)));
    case "hold": {
      const [held] = await lab.replica.engine.holds({ ...agent, agentId: agent.id }, [{ requestId, generation }]);
      return held?.outcome === "asked_to_stop" ? "stop" : "accepted";
    }
    case "hold_stale": {
      const [held] = await lab.replica.engine.holds({ ...agent, agentId: agent.id }, [
        { requestId, generation: stale },
      ]);
      expect(held?.outcome).toBe("asked_to_stop");
      return answered(lab.report(eventOf("accepted", agent, requestId, stale)));
    }
    case "decline":
      return answered(lab.report(declinedOf(agent, requestId, generation)));
    case "decline_cancelled":
      await cancelled();
      return answered(lab.report(declinedOf(agent, requestId, generation)));
    case "decline_stale":
      return answered(lab.report(declinedOf(agent, requestId, stale)));
    case "result_succeeded":
    case "result_repeated":
      return answered(lab.report(resultOf(agent, requestId, generation)));
    case "result_failed":
      return answered(lab.report(resultOf(agent, requestId, generation, { status: "failed" })));
    case "result_cancelled":
      await cancelled();
      return answered(lab.report(resultOf(agent, requestId, generation, { status: "failed", error: "killed" })));
    case "result_stale":
      return answered(lab.report(resultOf(agent, requestId, stale)));
    case "cancel":
    case "cancel_unsent": {
      const done = await cancel(request);
      return done && !done.ended ? "stop" : undefined;
    }
    case "wait_over":
      await lapse(lab.superuser, requestId, "wait_until");
      await endWaits(lab.system, { limit: 10 });
      return undefined;
    case "deadline":
    case "deadline_cancelled":
      if (event === "deadline_cancelled") await cancelled();
      if (statusesInFlight.includes(status)) await lapse(lab.superuser, requestId, "deadline_at");
      await lab.replica.engine.sweep();
      return undefined;
    case "revoke":
    case "revoke_unsent":
      await withOrg(lab.app, orgId, async (tx) => {
        const held = await holdAgent(tx, agent.id);
        const taken = await takeFromAgent(tx, agent.id);
        await markRevoked(tx, agent.id);
        return { held, taken };
      });
      return undefined;
  }
}

/** A row for which the event could happen is refused by the database. */
async function refuseRow(event: ExecutionEvent, { agent, requestId }: TestRequest): Promise<void> {
  const { status } = await lab.row(requestId);
  const update = async () => {
    if (event.endsWith("_unsent"))
      return lab.superuser`UPDATE executions SET session_id = NULL WHERE request_id = ${requestId}`;
    if (event.endsWith("_repeated"))
      return lab.superuser`UPDATE executions SET reported = true WHERE request_id = ${requestId}`;
    if (status === "succeeded")
      return lab.superuser`UPDATE executions SET reported = false WHERE request_id = ${requestId}`;
    return lab.superuser`UPDATE executions SET agent_id = ${agent.id} WHERE request_id = ${requestId}`;
  };
  await expect(update()).rejects.toMatchObject({ code: "23514" });
}

const lateResults = (id: string) => lab.superuser`SELECT FROM execution_late_results WHERE execution_id = ${id}`;

describe("an event", () => {
  it.each(cells)("EXEC-02 $event of a request that is $status: $outcome", async ({ status, event, outcome }) => {
    const request = await rowIn(status, {
      reported: event.endsWith("_repeated"),
      unsent: event.endsWith("_unsent") && status === "dispatched",
    });
    if (outcome === "x") return refuseRow(event, request);
    if (outcome === "renewed" && status === "running")
      await lab.superuser`UPDATE executions SET lease_until = now() WHERE request_id = ${request.requestId}`;
    const before = await lab.row(request.requestId);
    const response = await happen(event, request);
    const after = await lab.row(request.requestId);
    // Only `happen` itself changes these, to make it happen.
    const unchanged = {
      ...before,
      ...{
        cancel_requested_at: after.cancel_requested_at,
        deadline_at: after.deadline_at,
        wait_until: after.wait_until,
      },
    };
    switch (outcome) {
      case "renewed":
        expect(response).toBe("accepted");
        expect(after).toMatchObject({ status, generation: before.generation });
        if (status === "running") expect(after.lease_until?.getTime()).toBeGreaterThan(Date.now() + 30_000);
        break;
      case "stop":
        expect(response).toBe("stop");
        expect(after.status).toBe(status);
        if (event === "cancel") expect(after.cancel_requested_at).not.toBeNull();
        else expect(after).toEqual(before);
        break;
      case "late":
        expect(response).toBe("late");
        expect(after).toEqual(unchanged);
        expect(await lateResults(after.id)).toHaveLength(1);
        break;
      case "dup":
        expect(response).toBe(event === "again" ? "dup" : "duplicate");
        expect(after).toEqual(unchanged);
        expect(await lateResults(after.id)).toHaveLength(0);
        break;
      case "-":
        if (event.startsWith("decline")) expect(response).toBe("late");
        else expect(response).toBe(event === "hold_repeated" ? "duplicate" : undefined);
        expect(after).toEqual(unchanged);
        break;
      default:
        expect(after.status).toBe(outcome);
        expect(after.revision).toBeGreaterThan(before.revision);
        if (event.startsWith("result_")) expect(response).toBe("accepted");
        if (endedStatuses.includes(after.status)) expect(after.sealed_secret).toBeNull();
    }
    expect(await lab.miscounted()).toEqual([]);
  });
});
