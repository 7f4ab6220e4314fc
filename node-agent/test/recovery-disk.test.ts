// A whole agent that has lost its identity on a disk that is full or read-only. Real file systems, so it needs root.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { someFacts } from "../../testkit/agent/facts.ts";
import { explain, lookAt } from "../src/diagnostics/explain.ts";
import { readIdentity } from "../src/identity/identity-file.ts";
import { join } from "../src/identity/join.ts";
import type { FakeApi } from "./support/fake-api.ts";
import { shortLived, startQuick, stateOf, withToken } from "./support/recovering.ts";
import { smallFileSystem } from "./support/small-file-system.ts";

const options = { now: Date.now(), diskPressurePercent: 100 };

describe.skipIf(lacks("root"))("an agent that has lost its identity on a disk that fails", () => {
  const fill = (directory: string) => {
    for (const size of [64 * 1024, 512]) {
      try {
        for (;;) writeFileSync(`${directory}/filler`, Buffer.alloc(size), { flag: "a" });
      } catch {
        // Full.
      }
    }
  };
  const joinedOn = async (api: FakeApi, directory: string) => {
    await join({ token: api.token(), apiUrl: api.url, stateDir: directory, facts: someFacts });
    return withToken(api, directory);
  };

  it("ID-06 recovers on a full disk, keeps the identity over a restart, and files it when there is space", async () => {
    const api = await shortLived();
    const { directory } = smallFileSystem(2 * 1024 * 1024);
    const { files } = await joinedOn(api, directory);
    const before = readFileSync(files.identity, "utf8");
    fill(directory);
    const first = await startQuick(directory);
    await expect.poll(() => api.heartbeats.at(-1)?.counters.recovery_successes).toBe(1);
    expect(readFileSync(files.identity, "utf8")).toBe(before);
    const findings = api.heartbeats.at(-1)?.findings.map(({ reason }) => reason) ?? [];
    expect(findings).toContain("disk_full");
    expect(findings).not.toContain("cert_expired");
    await first.stop();
    expect(explain(lookAt(directory, options), Date.now()).join("\n")).toContain("waits for disk space");
    const heard = api.heartbeats.length;
    const second = await startQuick(directory);
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(heard);
    expect(api.recovery.requests).toHaveLength(1);
    rmSync(`${directory}/filler`);
    await expect.poll(() => stateOf(directory).recovered).toBeNull();
    expect(readIdentity(files).certificate.serial).toBe(api.serials.at(-1));
    await second.stop();
  });

  it("ID-06 sends no token while nothing can be written, says why, and recovers once it can", async () => {
    const api = await shortLived();
    const { directory, remount } = smallFileSystem(20 * 1024 * 1024);
    await joinedOn(api, directory);
    remount("ro");
    const agent = await startQuick(directory);
    await expect.poll(() => agent.logged()).toContain("state_dir_read_only");
    await expect.poll(() => api.requests.filter((path) => path === "/v1/server-time").length).toBeGreaterThan(0);
    expect(api.recovery.requests).toEqual([]);
    remount("rw");
    await expect.poll(() => api.heartbeats.at(-1)?.counters.recovery_successes).toBe(1);
    await agent.stop();
  });
});
