// Which shell belongs to a task that an earlier agent process did not finish.

import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { directoryOf } from "../src/terminals/directory.ts";
import { terminalHost } from "./support/terminals.ts";

const notStopped = new AbortController().signal;
const notes = (stateDir: string) => readdirSync(directoryOf(stateDir)).filter((name) => name.endsWith(".task"));

describe("a terminal of an earlier agent process", () => {
  it("TASK-05 is found by its task once the gateway has it again", async () => {
    const host = await terminalHost();
    const [taskId, other] = [randomUUID(), randomUUID()];
    const { pid, sessionId, stream } = await host.open({}, { taskId });
    await host.open({}, { taskId: other });
    const terminals = await host.restart();
    const found = await terminals.recover(taskId, notStopped);
    expect(found).toMatchObject({ pid, offset: 0 });
    await (await host.gateway.stream(sessionId, stream)).frame("hello");
    expect((await terminals.recover(other, notStopped))?.pid).not.toBe(pid);
    expect(await terminals.recover(randomUUID(), notStopped)).toBeUndefined();
  });

  it("TASK-05 is not waited for after a stop, and its shell keeps running", async () => {
    const host = await terminalHost();
    const taskId = randomUUID();
    await host.open({}, { taskId });
    host.gateway.refuse = () => ({ status: 503, body: "" });
    const terminals = await host.restart();
    const stop = new AbortController();
    const recovering = terminals.recover(taskId, stop.signal);
    stop.abort(new Error("agent_stops"));
    await expect(recovering).rejects.toThrow("agent_stops");
    expect(terminals.count()).toBe(1);
  });

  it("TASK-05 leaves no note of its task when it has ended", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    expect(notes(host.stateDir)).toHaveLength(1);
    stream.send({ type: "close", reason: "asked" });
    await expect.poll(() => notes(host.stateDir)).toEqual([]);
    const old = `${directoryOf(host.stateDir)}/${randomUUID()}.task`;
    writeFileSync(old, randomUUID());
    await host.restart();
    expect(existsSync(old)).toBe(false);
  });
});
