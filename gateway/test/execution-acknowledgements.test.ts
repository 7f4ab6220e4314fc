// A result is acknowledged once the api has stored it, and not before: until then the agent keeps it, and sends it again.

import { ApiError } from "@holdfast/contracts/errors";
import { expect, it } from "vitest";
import { connectAgent, dispatchAsync, dispatchBody, resultOf } from "../../testkit/gateway/agents.ts";
import { startTestGateway } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";

const rig = useRig();
const done = { status: "succeeded", output: "done" };

const never = () => new Promise<never>(() => undefined);
function refused(): Promise<never> {
  const refusal = Promise.reject(new ApiError("invalid_request"));
  refusal.catch(() => undefined);
  return refusal;
}

it.for([
  { api: "does not respond", trouble: never },
  { api: "refuses it", trouble: refused },
])("EXEC-04 a result is not acknowledged when the api $api and the gateway stops", async ({ trouble }) => {
  const model = rig.api.executions;
  const reports = () => model.calls.filter(({ name }) => name === "reportExecutionEvents");
  const gateway = await startTestGateway(rig.api);
  const agent = model.pair();
  const peer = await connectAgent(gateway, agent);
  await dispatchAsync(gateway, dispatchBody(agent.orgId));
  const { requestId, generation } = await peer.next("execute");
  model.before.set("reportExecutionEvents", trouble());
  const before = reports().length;
  const frame = { type: "execute_result", requestId, generation, ...done };
  peer.send(frame);
  await expect.poll(() => reports().length).toBeGreaterThan(before);
  await gateway.stop();
  await peer.closed;
  expect(peer.frames.filter(({ type }) => type === "result_ack")).toEqual([]);

  model.before.clear();
  const next = await connectAgent(rig.gateway, agent, { holding: [{ requestId, generation }] });
  next.send(frame);
  expect(await next.next("result_ack")).toMatchObject({ requestId, verdict: "accepted" });
  expect((await resultOf(rig.gateway, requestId)).body).toEqual(done);
});
