import type { ExecutionOffer } from "@holdfast/contracts/internal/executions";
import { describe, expect, it } from "vitest";
import { cycleAt, forOlderAgent, olderFrame } from "./older-agents.ts";

const step = (config: unknown, more: object = {}) => ({
  nodeId: "n",
  node: { id: "n", type: "agent.execute", config },
  ...more,
});
const task = { type: "shell", script: "true", shell: "bash", env: { A: "1" } };
const sandbox = {
  backend: "docker",
  network: "none",
  timeoutMs: 1000,
  docker: { image: "alpine" },
  envPassthroughAllowlist: ["KEY"],
};

describe("what an agent of another system is sent", () => {
  it("EXEC-02 is everything that it knows", () => {
    const known = step({ task, sandbox }, { runId: "r", workflowId: "w", attemptCount: 1 });
    expect(forOlderAgent("agent.execute", known)).toEqual({ payload: known });
    const action = { connectorId: "c", actionId: "a", input: { any: [1, null] }, env: { A: "1" } };
    expect(forOlderAgent("connector.action", action)).toEqual({ payload: action });
  });

  it("EXEC-02 is nothing else, at any depth", () => {
    const more = { secretRef: "x" };
    const payload = step(
      {
        task: { ...task, ...more },
        sandbox: { ...sandbox, docker: { image: "alpine", ...more }, ...more },
        ...more,
      },
      more,
    );
    expect(forOlderAgent("agent.execute", payload)).toEqual({ payload: step({ task, sandbox }) });
    const action = { connectorId: "c", actionId: "a", ...more };
    expect(forOlderAgent("connector.action", action)).toEqual({ payload: { connectorId: "c", actionId: "a" } });
  });

  it("EXEC-02 has a configuration, also when there is none", () => {
    const payload = { nodeId: "n", node: { id: "n", type: "agent.execute" } };
    expect(forOlderAgent("agent.execute", payload)).toEqual({ payload: step({}) });
  });

  it.for<[string, unknown]>([
    ["another backend", step({ task, sandbox: { ...sandbox, backend: "podman" } })],
    ["another kind of task", step({ task: { type: "python", script: "1" } })],
    ["another shell", step({ task: { ...task, shell: "fish" } })],
    ["a network of another kind", step({ task, sandbox: { network: "host" } })],
    ["no node", { nodeId: "n" }],
    ["null", null],
  ])("EXEC-02 is not a payload with %s, which it would report as done", ([, payload]) => {
    expect(forOlderAgent("agent.execute", payload)).toEqual({ unfit: expect.any(String) });
  });

  it.for([null, ""])("EXEC-02 has no secret where there is none: %o", (secret) => {
    const offer = {
      request_id: "r",
      org_id: "o",
      user_id: "u",
      kind: "connector.action",
      secret,
    } as ExecutionOffer;
    expect(olderFrame(offer, {})).toEqual({
      type: "execute",
      requestId: "r",
      organizationId: "o",
      userId: "u",
      kind: "connector.action",
      payload: {},
    });
  });
});

describe("when the socket of an agent of another system is cycled", () => {
  it.for([
    [60_000, 50_000],
    [4_000, 3_000],
    [1_000, 750],
    [0, 0],
    [-5_000, -5_000],
  ] as const)("EXEC-04 before a deadline in %i ms, after %i ms", ([deadline, at]) => {
    expect(cycleAt(1_000_000, 1_000_000 + deadline)).toBe(1_000_000 + at);
  });
});
