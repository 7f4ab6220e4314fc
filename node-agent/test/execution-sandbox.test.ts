// Shell steps in a sandbox, from the dispatch to the result: what the owner of the host sets is what a step gets.

import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { running, uniqueSleep } from "./drivers/sandbox/bench.ts";
import { connectedSteps } from "./support/connected-steps.ts";

const bubblewrap = { HOLDFAST_EXECUTION_BACKEND: "bubblewrap", HOLDFAST_EXECUTION_ALLOW_UNENFORCED: "" };

const connected = (env: Record<string, string> = {}) => connectedSteps({ ...bubblewrap, ...env });

describe.skipIf(lacks("root") || lacks("bubblewrap"))("a shell step in bubblewrap", () => {
  it("SBX-03 gets the variables that step and owner name, and says which are missing; none is published", async () => {
    process.env["SANDBOX_TEST_KEY"] = "value-of-the-key";
    process.env["SANDBOX_TEST_OTHER"] = "value-of-the-other";
    try {
      const { step, socket } = await connected({ HOLDFAST_EXECUTION_ENV_PASSTHROUGH: "SANDBOX_TEST_KEY" });
      const script = 'test "$SANDBOX_TEST_KEY" = value-of-the-key && echo same; env | grep SANDBOX_TEST';
      const sandbox = { envPassthroughAllowlist: ["SANDBOX_TEST_KEY", "SANDBOX_TEST_OTHER"] };
      expect(await step(script, { sandbox })).toMatchObject({
        status: "succeeded",
        output: {
          stdout: "same\nSANDBOX_TEST_KEY=[secret]\n",
          missingVariables: [
            expect.stringMatching(/^SANDBOX_TEST_OTHER: not in HOLDFAST_EXECUTION_ENV_PASSTHROUGH/),
          ],
        },
      });
      expect(JSON.stringify(socket.frames)).not.toMatch(/value-of-the/);
    } finally {
      delete process.env["SANDBOX_TEST_KEY"];
      delete process.env["SANDBOX_TEST_OTHER"];
    }
  });

  it("SBX-01 has no network unless step and owner want it", async () => {
    const script = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n'";
    const closed = await connected();
    expect(await closed.step(script)).toMatchObject({ output: { stdout: "lo" } });
    expect(await closed.step(script, { sandbox: { network: "enabled" } })).toMatchObject({
      ...{ status: "failed", error: expect.stringMatching(/HOLDFAST_EXECUTION_ALLOW_NETWORK=yes/) },
    });
    const open = await connected({ HOLDFAST_EXECUTION_ALLOW_NETWORK: "yes" });
    expect(await open.step(script)).toMatchObject({ output: { stdout: "lo" } });
    expect(await open.step("readlink /proc/self/ns/net", { sandbox: { network: "enabled" } })).toMatchObject({
      status: "succeeded",
    });
  });

  it("EXEC-05 that is cancelled ends with everything that it started, and its cgroups", async () => {
    const { gateway, socket, cgroups } = await connected();
    const sleep = uniqueSleep();
    const order = gateway.shell(`setsid ${sleep} & (env -i ${sleep} &); ${sleep}`);
    socket.send(order);
    await expect.poll(() => running(sleep).length).toBe(3);
    expect(cgroups().length).toBeGreaterThan(0);
    socket.send({ type: "cancel", requestId: order.requestId, generation: 1, reason: "by a person" });
    expect(await gateway.result(order.requestId)).toMatchObject({
      status: "failed",
      error: "EXECUTION_CANCELLED",
    });
    expect([running(sleep), cgroups()]).toEqual([[], []]);
  });

  it("AGENT-10 reads the secret from a file, and nothing of it is in the journal, the log or the frames", async () => {
    const { agent, socket, step } = await connected();
    const script =
      'cat "$HOLDFAST_EXECUTION_SECRET_FILE" | wc -c; env | grep -c "SECRET="; cat "$HOLDFAST_EXECUTION_SECRET_FILE"';
    expect(await step(script, { secret: "s3cret-value" })).toMatchObject({
      output: { stdout: "12\n0\n[secret]" },
    });
    expect(JSON.stringify(socket.frames) + agent.logged()).not.toContain("s3cret-value");
  });
});
