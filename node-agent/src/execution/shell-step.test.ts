import { describe, expect, it } from "vitest";
import { sandboxWith } from "../../test/support/host-backend.ts";
import { agentStep, limitOf, resultOf } from "./shell-step.ts";

const stepOf = (config: object, env: Record<string, string> = {}) =>
  agentStep(
    {
      nodeId: "n",
      node: { id: "n", type: "agent.execute", config: { task: { type: "shell", script: "true" }, ...config } },
    },
    sandboxWith(undefined, env),
    undefined,
  );

describe("a shell step", () => {
  it("SBX-02 runs no longer than the owner of the host allows, and shorter if it asks for that", () => {
    expect(stepOf({}).timeoutMs).toBe(30_000);
    const owner = { VESPID_AGENT_DOCKER_TIMEOUT_MS: "2000" };
    expect(stepOf({ sandbox: { timeoutMs: 60_000 } }, owner).timeoutMs).toBe(2000);
    expect(stepOf({ sandbox: { timeoutMs: 1000 } }, owner).timeoutMs).toBe(1000);
  });

  it.for(["", "A=B", "a\0b"])("EXEC-05 with a variable that cannot be set is refused: %j", async (name) => {
    const step = stepOf({ task: { type: "shell", script: "true", env: { [name]: "1" } } });
    expect(step.pure).toBe(true);
    const error = expect.stringMatching(/not the name of an environment variable/);
    expect(await step.run({} as Parameters<typeof step.run>[0])).toMatchObject({ status: "failed", error });
  });
});

describe("the limit in a result", () => {
  it("SBX-02 is the one that explains best what happened", () => {
    const nothing = { timedOut: false, truncated: false };
    expect(limitOf([], nothing)).toBeUndefined();
    expect(limitOf(["cpu"], nothing)).toBe("cpu");
    expect(limitOf(["cpu", "memory"], nothing)).toBe("memory");
    expect(limitOf(["disk", "cpu"], { ...nothing, truncated: true })).toBe("disk");
    expect(limitOf(["cpu"], { ...nothing, truncated: true })).toBe("output");
    expect(limitOf(["memory"], { timedOut: true, truncated: true })).toBe("time");
  });
});

describe("the result of a script", () => {
  const output = (exitCode: number | null, timedOut = false) => ({
    ...{ backend: "host", exitCode, timedOut, stdout: "", stderr: "" },
    ...{ stdoutTruncated: false, stderrTruncated: false },
  });
  it("EXEC-05 is its exit code, or why it was ended", () => {
    expect(resultOf(output(0), undefined)).toMatchObject({ status: "succeeded" });
    expect(resultOf(output(3), undefined)).toMatchObject({ status: "failed", error: "NODE_EXECUTION_FAILED" });
    expect(resultOf(output(null, true), "timeout")).toMatchObject({
      ...{ status: "failed", error: "NODE_EXECUTION_TIMEOUT", output: { timedOut: true, exitCode: null } },
    });
    expect(resultOf(output(null), "cancelled")).toMatchObject({ status: "failed", error: "EXECUTION_CANCELLED" });
  });

  it("EXEC-05 of a script that ended by itself in the same instant is its own", () => {
    const ended = { status: "succeeded", output: { exitCode: 0, timedOut: false } };
    expect(resultOf(output(0, true), "timeout")).toMatchObject(ended);
  });
});
