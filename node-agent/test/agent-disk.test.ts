// A whole agent on a disk that is full or read-only: it stays in touch, takes no tasks, says why, and
// goes on by itself. Real file systems, so it needs root.

import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { startTestAgent } from "../../testkit/agent/agent.ts";
import { someFacts } from "../../testkit/agent/facts.ts";
import { join } from "../src/identity/join.ts";
import { type FakeApi, startFakeApi } from "./support/fake-api.ts";
import { smallFileSystem } from "./support/small-file-system.ts";

const MEGABYTE = 1024 * 1024;
const joinIn = (api: FakeApi, stateDir: string) =>
  join({ token: api.token(), apiUrl: api.url, stateDir, facts: someFacts });
const findings = (api: FakeApi) => api.heartbeats.at(-1)?.findings.map((one) => one.reason) ?? [];

function fill(directory: string): string {
  const path = joinPath(directory, "filler");
  try {
    for (;;) writeFileSync(path, Buffer.alloc(64 * 1024), { flag: "a" });
  } catch {
    return path;
  }
}

describe.skipIf(lacks("root"))("an agent whose disk fails", () => {
  it("AGENT-05 starts without room for its journal, takes no tasks, and says disk_full", async () => {
    const api = await startFakeApi();
    const { directory } = smallFileSystem(4 * MEGABYTE);
    await joinIn(api, directory);
    fill(directory);
    const agent = await startTestAgent(api, { stateDir: directory });
    const task = api.enqueue(api.sign({ task_type: "node.noop" }));
    await expect.poll(() => findings(api)).toContain("disk_full");
    expect(JSON.parse((await agent.get("/v1/capacity")).text)).toMatchObject({ room: 0 });
    expect(JSON.parse((await agent.get("/healthz")).text)).toMatchObject({ ok: true, findings: ["disk_full"] });
    expect(api.resultOf(task.task_id)).toBeUndefined();
    expect(agent.logged()).toContain("disk_full");
  });

  it("AGENT-05 goes on delivering on a disk that fills up while it runs", async () => {
    const api = await startFakeApi();
    const { directory } = smallFileSystem(20 * MEGABYTE);
    await joinIn(api, directory);
    await startTestAgent(api, { stateDir: directory });
    await expect.poll(() => api.held()).toBe(1);
    const filler = fill(directory);
    const task = api.enqueue(api.sign({ task_type: "node.noop", params: { echo: "full" } }));
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { result: { echo: "full" } } });
    rmSync(filler);
  });

  it("AGENT-05 on a read-only disk stays in touch and says state_dir_read_only; writable again, it works", async () => {
    const api = await startFakeApi();
    const { directory, remount } = smallFileSystem(20 * MEGABYTE);
    await joinIn(api, directory);
    remount("ro");
    const agent = await startTestAgent(api, { stateDir: directory, checkHostMs: 500 });
    const task = api.enqueue(api.sign({ task_type: "node.noop", params: { echo: "again" } }));
    await expect.poll(() => findings(api)).toContain("state_dir_read_only");
    expect(api.resultOf(task.task_id)).toBeUndefined();
    remount("rw");
    // With the next check of the host.
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { result: { echo: "again" } } });
    expect(agent.logged()).toContain("state_dir_read_only");
    await expect.poll(agent.logged).toContain("no longer found: state_dir_read_only");
    await agent.stop();
  });

  it("AGENT-05 reports a history that it cannot write, and writes it again by itself", async () => {
    const api = await startFakeApi();
    const { directory } = smallFileSystem(20 * MEGABYTE);
    await joinIn(api, directory);
    const path = joinPath(directory, "diagnostics.log");
    rmSync(path, { force: true });
    mkdirSync(path);
    const agent = await startTestAgent(api, {
      stateDir: directory,
      env: { HOLDFAST_AGENT_HEARTBEAT_SECONDS: "1" },
    });
    await expect.poll(() => findings(api)).toEqual(["diagnostics_unwritable"]);
    rmdirSync(path);
    await expect.poll(() => findings(api)).toEqual([]);
    await expect.poll(() => readFileSync(path, "utf8")).toContain("no longer found: diagnostics_unwritable");
    expect(readFileSync(path, "utf8")).toContain('"reason":"diagnostics_unwritable"');
    await agent.stop();
  });

  it("AGENT-05 joins nothing on a disk that is full or read-only", async () => {
    const api = await startFakeApi();
    const full = smallFileSystem(64 * 1024);
    fill(full.directory);
    await expect(joinIn(api, full.directory)).rejects.toMatchObject({ reason: "disk_full" });
    const { directory, remount } = smallFileSystem(MEGABYTE);
    remount("ro");
    await expect(joinIn(api, directory)).rejects.toMatchObject({ reason: "state_dir_read_only" });
    expect(api.requests).toEqual([]);
  });
});
