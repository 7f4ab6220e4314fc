// An agent that runs steps on a disk that is full: what it has accepted loses no result, and what it cannot remember it declines.
// Real file systems, so it needs root.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { countedSteps } from "./support/counted-steps.ts";
import { startTestExecutionAgent } from "./support/execution-agent.ts";
import { smallFileSystem } from "./support/small-file-system.ts";
import { startStandInGateway } from "./support/stand-in-gateway.ts";

const MEBIBYTE = 1024 * 1024;

function fill(directory: string): string {
  const path = join(directory, "filler");
  try {
    for (;;) writeFileSync(path, Buffer.alloc(64 * 1024), { flag: "a" });
  } catch {
    return path;
  }
}

describe.skipIf(lacks("root"))("an agent that runs steps on a full disk", () => {
  it("EXEC-04 keeps the result of what runs when the disk fills up, and delivers it after a restart", async () => {
    const gateway = await startStandInGateway();
    const { directory } = smallFileSystem(40 * MEBIBYTE);
    // The scripts need a disk of their own.
    const env = { HOLDFAST_EXECUTION_WORKDIR_ROOT: "/tmp" };
    const agent = await startTestExecutionAgent(gateway, { directory, env });
    const socket = await gateway.socket();
    const steps = countedSteps();
    const order = gateway.shell(`${steps.script("one")}; head -c 65536 /dev/zero | tr '\\0' x`);
    gateway.verdict = undefined;
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    fill(directory);
    steps.release();
    await gateway.result(order.requestId);
    await agent.stop();
    gateway.results.length = 0;
    await startTestExecutionAgent(gateway, { directory, env });
    expect(await gateway.result(order.requestId)).toMatchObject({
      ...{ status: "succeeded", output: { stdout: "x".repeat(65_536) } },
    });
    expect(steps.runs()).toEqual(["one"]);
  });

  it("EXEC-04 does not start without room for its journal, and says what to do", async () => {
    const gateway = await startStandInGateway();
    const { directory } = smallFileSystem(4 * MEBIBYTE);
    const filler = fill(directory);
    const start = () => startTestExecutionAgent(gateway, { directory });
    await expect(start()).rejects.toThrow(/no space left .*HOLDFAST_EXECUTION_STATE_DIR/);
    rmSync(filler);
  });

  it("EXEC-03 declines a step whose result would not fit, and runs one whose result does", async () => {
    const gateway = await startStandInGateway();
    gateway.verdict = undefined;
    const agent = await startTestExecutionAgent(gateway, { maxInFlight: 100 });
    const socket = await gateway.socket();
    const input = "x".repeat(1_000_000);
    const large = Array.from({ length: 40 }, () =>
      gateway.order({ payload: { connectorId: "echo", actionId: "echo", input } }),
    );
    for (const order of large) socket.send(order);
    await expect.poll(() => socket.of("declined").length + gateway.results.length).toBe(large.length);
    expect(socket.of("declined").length).toBeGreaterThan(0);
    expect(socket.of("declined")[0]?.reason).toMatch(/no room/);
    for (const { requestId } of gateway.results) {
      socket.send({ type: "result_ack", requestId, generation: 1, verdict: "accepted" });
    }
    gateway.verdict = "accepted";
    const again = { ...large.at(-1), generation: 2, requestId: large.at(-1)?.requestId ?? "" };
    socket.send(again);
    expect(await gateway.result(again.requestId)).toMatchObject({ status: "succeeded" });
    await agent.stop();
  });

  it("EXEC-05 reports an output that is too large to be delivered", async () => {
    const gateway = await startStandInGateway();
    await startTestExecutionAgent(gateway);
    const socket = await gateway.socket();
    const order = gateway.order({
      payload: { connectorId: "echo", actionId: "echo", input: "x".repeat(1_100_000) },
    });
    socket.send(order);
    expect(await gateway.result(order.requestId)).toMatchObject({
      ...{ status: "failed", error: "NODE_EXECUTION_FAILED: its output has more than 1048576 bytes" },
    });
  });
});
