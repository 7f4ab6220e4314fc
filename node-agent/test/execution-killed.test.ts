// A real agent process that is killed without warning at every point of its work, and started again. What ran is counted by a
// file that the step itself appends to.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { dieAtEveryPhase } from "../../testkit/phase-crash/every-phase.ts";
import { countedSteps } from "./support/counted-steps.ts";
import { type AgentSocket, type StandInGateway, startStandInGateway } from "./support/stand-in-gateway.ts";

const program = fileURLToPath(new URL("support/execution-process.ts", import.meta.url));

async function machine() {
  const gateway = await startStandInGateway();
  const root = scratchDirectory();
  const directory = join(root, "state");
  mkdirSync(directory);
  const steps = countedSteps(root);
  const start = (dieAt?: string) => {
    const order = JSON.stringify({ credentials: gateway.credentials(), directory, dieAt });
    const child = spawn(process.execPath, [program, order], { stdio: ["ignore", "pipe", "ignore"] });
    atEnd(() => child.kill("SIGKILL"));
    const points: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => points.push(line));
    return { child, points, ended: once(child, "exit") };
  };
  return { gateway, directory, steps, start };
}
type Machine = Awaited<ReturnType<typeof machine>>;

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** As the control plane does: a request that the agent does not hold is sent again. */
async function sendUnlessHeld(gateway: StandInGateway, order: { requestId: string }, after?: AgentSocket) {
  const socket = await gateway.socket(after);
  const holds = socket.hello?.holding?.some(({ requestId }) => requestId === order.requestId);
  if (!holds && !gateway.resultOf(order.requestId)) socket.send(order);
  return socket;
}

describe("an agent that is killed while it runs steps", () => {
  it("EXEC-02 at any point runs the step at most once, and reports one result", async () => {
    const seen: Record<string, { runs: number; error: string | undefined }> = {};
    const orders = new Map<Machine, ReturnType<StandInGateway["shell"]>>();
    const prepare = async () => {
      const place = await machine();
      place.steps.release();
      orders.set(place, place.gateway.shell(place.steps.script("ran")));
      return place;
    };
    const run = async (place: Machine, dieAt?: string) => {
      const order = orders.get(place) ?? expect.unreachable();
      const process = place.start(dieAt);
      const socket = await sendUnlessHeld(place.gateway, order);
      return { order, process, socket };
    };
    await dieAtEveryPhase<Machine>({
      prepare,
      async complete(place) {
        const { order, process } = await run(place);
        await place.gateway.result(order.requestId);
        await expect.poll(() => process.points).toContain("after settled");
        await kill(process.child);
        return process.points;
      },
      async die(place, phase) {
        const { process, socket } = await run(place, phase);
        await process.ended;
        // Otherwise the next order could be sent to an agent that is gone.
        await expect.poll(socket.closed).toBeDefined();
      },
      async recover(place, phase) {
        const { order, process } = await run(place);
        const result = await place.gateway.result(order.requestId);
        await kill(process.child);
        seen[phase] = { runs: place.steps.runs().length, error: result.error };
        const outcomes = new Set(place.gateway.results.map(({ status, error }) => `${status} ${error}`));
        expect([phase, outcomes.size]).toEqual([phase, 1]);
      },
    });
    const restarted = expect.stringMatching(/^NODE_EXECUTION_FAILED: the agent was restarted while the step ran/);
    expect(seen).toEqual({
      // Nothing had started: it was sent again.
      "before claimed": { runs: 1, error: undefined },
      "after claimed": { runs: 1, error: undefined },
      "before started": { runs: 1, error: undefined },
      // On disk, and perhaps begun: never again.
      "during started": { runs: 0, error: restarted },
      "after started": { runs: 0, error: restarted },
      "before result": { runs: 1, error: restarted },
      // The record is written, though not synced: the process is gone, the machine is not.
      "during result": { runs: 1, error: undefined },
      "after result": { runs: 1, error: undefined },
      "before settled": { runs: 1, error: undefined },
      "after settled": { runs: 1, error: undefined },
    });
  });

  it("EXEC-02 while a script runs: what the script started is ended, and reported as interrupted", async () => {
    const { gateway, directory, steps, start } = await machine();
    const first = start();
    const order = gateway.shell(`sleep 1000 & setsid sleep 1000 & ${steps.script("one")}`);
    const socket = await sendUnlessHeld(gateway, order);
    await expect.poll(steps.runs).toEqual(["one"]);
    const group = steps.group();
    await kill(first.child);
    expect(group().length).toBeGreaterThan(0);
    start();
    await sendUnlessHeld(gateway, order, socket);
    expect(await gateway.result(order.requestId)).toMatchObject({
      ...{ status: "failed", generation: 1, error: expect.stringContaining("the agent was restarted") },
    });
    expect(group()).toEqual([]);
    expect(readdirSync(join(directory, "workdir"))).toEqual([]);
    expect(steps.runs()).toEqual(["one"]);
  });

  it("EXEC-04 keeps a result that nobody acknowledged, over any number of restarts", async () => {
    const { gateway, steps, start } = await machine();
    gateway.verdict = undefined;
    steps.release();
    const order = gateway.shell(steps.script("one"));
    let process = start();
    let socket = await sendUnlessHeld(gateway, order);
    for (let round = 0; round < 3; round += 1) {
      expect(await gateway.result(order.requestId)).toMatchObject({
        status: "succeeded",
        output: { exitCode: 0 },
      });
      await kill(process.child);
      gateway.results.length = 0;
      process = start();
      socket = await sendUnlessHeld(gateway, order, socket);
      expect(socket.hello?.holding).toEqual([{ requestId: order.requestId, generation: 1 }]);
    }
    expect(steps.runs()).toEqual(["one"]);
  });
});
