import { describe, expect, it } from "vitest";
import type { SandboxDriver } from "../drivers/sandbox/driver.ts";
import { refusalOf, resultOf, type Sandbox } from "./shell-step.ts";

const driver: SandboxDriver = { name: "host", run: () => expect.unreachable(), recover: async () => 0 };
const host: Sandbox = { configured: "host", driver };
const task = { type: "shell" as const, script: "true" };

describe("a shell task", () => {
  it("EXEC-05 runs where the owner of the host allows it, and names what has to be set elsewhere", () => {
    expect(refusalOf(task, {}, host)).toBeUndefined();
    expect(refusalOf(task, { backend: "host", network: "enabled", timeoutMs: 1000 }, host)).toBeUndefined();
    expect(refusalOf(task, {}, { configured: undefined, driver: undefined })).toMatch(
      /HOLDFAST_EXECUTION_BACKEND=host/,
    );
    expect(refusalOf(task, {}, { configured: "docker", driver: undefined })).toMatch(/backend docker/);
  });

  it.for([
    [{ backend: "docker" }, /requires the backend "docker"/],
    [{ network: "none" as const }, /without network/],
    [{ envPassthroughAllowlist: ["OPENAI_API_KEY"] }, /agent's environment/],
  ])("EXEC-05 is refused rather than run with less than it requires: %j", ([wanted, why]) => {
    expect(refusalOf(task, wanted as object, host)).toMatch(why as RegExp);
  });

  it.for(["", "A=B", "a\0b"])("EXEC-05 with a variable that cannot be set is refused: %j", (name) => {
    expect(refusalOf({ ...task, env: { [name]: "1" } }, {}, host)).toMatch(
      /not the name of an environment variable/,
    );
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
