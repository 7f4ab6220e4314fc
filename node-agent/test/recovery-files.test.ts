// recovery.bin and recovery-ca.pem on a real disk, also a full and a read-only one.

import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import {
  addRecoveryRoots,
  pinRecoveryRoots,
  recoveryRoots,
  recoveryUrlAtJoin,
  recoveryUrls,
} from "../src/recovery/path.ts";
import { emptyState } from "../src/recovery/state.ts";
import { openRecoveryFile, readRecoveryFile } from "../src/recovery/state-file.ts";
import { smallFileSystem } from "./support/small-file-system.ts";

const node = "0190a3f0-0000-7000-8000-000000000001";
const times = { issued_at: "2027-01-01T00:00:00Z", expires_at: "2027-01-02T00:00:00Z" };
const withToken = (seq: number) => ({
  ...emptyState(node),
  token: { token: `hfr_${seq}`, seq, profile: "lab", ...times },
});

describe("recovery.bin", () => {
  it("ID-04 is allocated when it is created, readable by its owner alone, and keeps the newest state", () => {
    const files = stateFiles(scratchDirectory());
    const store = openRecoveryFile(files, node);
    const { size, mode } = statSync(files.recovery);
    expect({ size, mode: mode & 0o777 }).toEqual({ size: 64 * 1024, mode: 0o600 });
    expect(store.read()).toEqual(emptyState(node));
    for (const seq of [1, 2, 3]) store.write(withToken(seq));
    store.close();
    expect(statSync(files.recovery).size).toBe(size);
    expect(readRecoveryFile(files, node)).toEqual(withToken(3));
    expect(openRecoveryFile(files, node).read()).toEqual(withToken(3));
  });

  it("ID-04 of another node that this machine was is not used", () => {
    const files = stateFiles(scratchDirectory());
    openRecoveryFile(files, node).write(withToken(1));
    const other = node.replace(/1$/, "2");
    expect(openRecoveryFile(files, other).read()).toEqual(emptyState(other));
  });

  it("ID-04 is created again if somebody removes or truncates it", () => {
    const files = stateFiles(scratchDirectory());
    const store = openRecoveryFile(files, node);
    store.write(withToken(1));
    rmSync(files.recovery);
    store.write(withToken(2));
    expect(readRecoveryFile(files, node)).toEqual(withToken(2));
    truncateSync(files.recovery, 100);
    expect(readRecoveryFile(files, node)).toEqual(emptyState(node));
    openRecoveryFile(files, node).write(withToken(3));
    expect(readRecoveryFile(files, node)).toEqual(withToken(3));
  });

  describe.skipIf(lacks("root"))("on a disk that fails", () => {
    const fill = (directory: string) => {
      try {
        for (;;) writeFileSync(`${directory}/filler`, Buffer.alloc(16 * 1024), { flag: "a" });
      } catch {
        // Full.
      }
    };

    it("ID-06 is written when the disk is full", () => {
      const { directory } = smallFileSystem(1024 * 1024);
      const files = stateFiles(directory);
      const store = openRecoveryFile(files, node);
      fill(directory);
      expect(() => writeFileSync(`${directory}/more`, Buffer.alloc(64 * 1024))).toThrow(/ENOSPC/);
      for (const seq of [1, 2, 3]) store.write(withToken(seq));
      store.close();
      expect(readRecoveryFile(files, node)).toEqual(withToken(3));
    });

    it("ID-06 that could not be created leaves nothing behind, and is created with the first write that can", () => {
      const { directory } = smallFileSystem(1024 * 1024);
      const files = stateFiles(directory);
      fill(directory);
      const store = openRecoveryFile(files, node);
      expect(() => store.write(withToken(1))).toThrow(expect.objectContaining({ reason: "disk_full" }));
      expect(existsSync(files.recovery)).toBe(false);
      expect(store.read()).toEqual(emptyState(node));
      rmSync(`${directory}/filler`);
      store.write(withToken(2));
      store.close();
      expect(readRecoveryFile(files, node)).toEqual(withToken(2));
    });

    it("ID-06 is read on a read-only disk, and a write says why it failed", () => {
      const { directory, remount } = smallFileSystem(1024 * 1024);
      const files = stateFiles(directory);
      const first = openRecoveryFile(files, node);
      first.write(withToken(1));
      first.close();
      remount("ro");
      const store = openRecoveryFile(files, node);
      expect(store.read()).toEqual(withToken(1));
      expect(() => store.write(withToken(2))).toThrow(expect.objectContaining({ reason: "state_dir_read_only" }));
      remount("rw");
      store.write(withToken(2));
      store.close();
      expect(readRecoveryFile(files, node)).toEqual(withToken(2));
    });
  });
});

describe("the recovery path", () => {
  const profile = { name: "lab", version: 1, endpoints: {} as Record<string, string>, resolve: {}, ca_sha256: [] };
  const agent = {
    ...{ node_id: node, org_id: node, node_name: "n", api_url: "https://joined", verifiers: { keys: [] } },
    profile: { ...profile, endpoints: { node_api: "https://nodes" } },
  };
  const published = { ...agent, profile: { ...profile, endpoints: { recovery: "https://recovery" } } };

  it("ID-06 is pinned at the join: the published address, else where it joined, and never one without TLS", () => {
    expect(recoveryUrlAtJoin(published)).toBe("https://recovery");
    expect(recoveryUrlAtJoin(agent)).toBe("https://joined");
    expect(recoveryUrlAtJoin({ ...agent, api_url: "http://127.0.0.1:1" })).toBe("https://nodes");
  });

  it("ID-06 begins with the pinned address, and an address on the host is the only one", () => {
    const pinned = { ...published, recovery_api_url: "https://pinned" };
    const all = ["https://pinned", "https://recovery", "https://nodes", "https://joined"];
    expect(recoveryUrls(pinned, "https://nodes", undefined)).toEqual(all);
    expect(recoveryUrls({ ...agent, api_url: "http://127.0.0.1" }, "https://nodes", undefined)).toEqual([
      "https://nodes",
    ]);
    expect(recoveryUrls(pinned, "https://nodes", "https://configured")).toEqual(["https://configured"]);
  });

  it("ID-06 trusts the pinned roots and those that were adopted since, whatever became of trust.pem", async () => {
    const files = stateFiles(scratchDirectory());
    const [first, second] = [(await makeAuthority()).rootPem, (await makeAuthority()).rootPem];
    const inForce = () => ["in force"];
    expect(recoveryRoots(files, inForce, undefined)).toEqual(["in force"]);
    pinRecoveryRoots(files, [first]);
    expect(statSync(files.recoveryRoots).mode & 0o777).toBe(0o600);
    addRecoveryRoots(files, [first]);
    expect(recoveryRoots(files, inForce, undefined)).toEqual([first]);
    addRecoveryRoots(files, [second]);
    expect(recoveryRoots(files, inForce, undefined)).toEqual([first, second]);
    writeFileSync(files.recoveryRoots, "damaged");
    expect(recoveryRoots(files, inForce, undefined)).toEqual(["in force"]);
  });

  it("ID-06 trusts exactly the file that is configured, or nothing", async () => {
    const directory = scratchDirectory();
    const files = stateFiles(directory);
    const [pinned, configured] = [(await makeAuthority()).rootPem, (await makeAuthority()).rootPem];
    pinRecoveryRoots(files, [pinned]);
    const path = `${directory}/own.pem`;
    const problem = expect.objectContaining({ reason: "trust_bundle_invalid" });
    expect(() => recoveryRoots(files, () => [], path)).toThrow(problem);
    writeFileSync(path, "nothing");
    expect(() => recoveryRoots(files, () => [], path)).toThrow(problem);
    writeFileSync(path, `# ours\n${configured}`);
    expect(recoveryRoots(files, () => [], path)).toEqual([configured]);
    expect(readFileSync(files.recoveryRoots, "utf8")).toContain(pinned.trim());
  });
});
