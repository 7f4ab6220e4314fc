// The environment profile: versions that never change, one in force for all replicas.

import { createLog } from "@holdfast/service/log";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { openProfile, type ProfileContent, profileContent } from "../src/profiles/profile.ts";

const _log = createLog({ process: "test", level: "fatal", destination: { write: () => undefined } });
let system: Sql;
let superuser: Sql;
beforeAll(async () => {
  ({ system, superuser } = openRoles(await createTestDatabase()));
});
beforeEach(async () => {
  await superuser`DELETE FROM environment_profiles`;
});

const content = (changes: Partial<Parameters<typeof profileContent>[0]> = {}): ProfileContent =>
  profileContent({
    nodeApiUrl: "https://nodes.example.com:18442",
    publicUrl: "https://holdfast.example.com",
    terminalUrl: undefined,
    endpoints: { registry: "https://registry.internal" },
    resolve: { "nodes.example.com": ["10.0.0.5"] },
    caSha256: ["ab".repeat(32)],
    ...changes,
  });

async function open(from: ProfileContent) {
  const source = await openProfile(system, from);
  return source;
}

describe("the environment profile", () => {
  it("ID-16 names where nodes find the server, what they may probe, and whom they trust", async () => {
    expect((await open(content())).current()).toEqual({
      name: "default",
      version: 1,
      endpoints: {
        registry: "https://registry.internal",
        node_api: "https://nodes.example.com:18442",
        public: "https://holdfast.example.com",
      },
      resolve: { "nodes.example.com": ["10.0.0.5"] },
      ca_sha256: ["ab".repeat(32)],
    });
  });

  it("ID-16 gets a new version exactly when its content changes", async () => {
    const versions = [];
    for (const changes of [{}, {}, { resolve: {} }, { resolve: {} }, {}]) {
      versions.push((await open(content(changes))).current().version);
    }
    expect(versions).toEqual([1, 1, 2, 2, 3]);
    const rows = await superuser`SELECT version FROM environment_profiles ORDER BY version`;
    expect(rows.map((row) => row["version"])).toEqual([1, 2, 3]);
  });

  it("ID-16 is one for replicas that start together, and for those that started before", async () => {
    const first = await open(content());
    const together = await Promise.all(Array.from({ length: 4 }, () => open(content({ resolve: {} }))));
    expect(together.map((one) => one.current().version)).toEqual([2, 2, 2, 2]);
    expect(first.current().version).toBe(1);
    await first.refresh();
    expect(first.current()).toEqual(together[0]?.current());
  });

  it("ID-16 is not made to lead agents elsewhere by the name of an address of our own", () => {
    const { endpoints } = content({ endpoints: { node_api: "https://evil.example", x: "http://x" } });
    expect(endpoints).toMatchObject({ node_api: "https://nodes.example.com:18442", x: "http://x" });
  });

  it("ID-16 reaches a node with the heartbeat after it has changed", async () => {
    const env = { HOLDFAST_NODE_API_URL: "https://localhost:18442", HOLDFAST_NODE_RESOLVE: "a.internal=10.0.0.1" };
    const api = await startTestApi({ env });
    const node = await enrollTestNode(api, (await createOrg(api, "ours")).id);
    expect(node.enrolled.profile).toMatchObject({
      endpoints: { node_api: "https://localhost:18442", public: api.url },
      resolve: { "a.internal": ["10.0.0.1"] },
    });
    const { name, version } = node.enrolled.profile;
    expect((await sendHeartbeatFrom(node, { profile: { name, version } })).body["profile"]).toBeUndefined();
    const older = await sendHeartbeatFrom(node, { profile: { name, version: version + 1 } });
    expect(older.body["profile"]).toEqual(node.enrolled.profile);
  });

  it("TERM-04 names the terminal gateway where it says it is, and keeps that over a restart", async () => {
    const first = await open(content());
    await first.terminalsAt("https://terminals.example.com:18443");
    expect(first.current()).toMatchObject({
      version: 2,
      endpoints: {
        node_api: "https://nodes.example.com:18442",
        node_terminal: "https://terminals.example.com:18443",
      },
    });
    await first.terminalsAt("https://terminals.example.com:18443");
    expect((await open(content())).current()).toEqual(first.current());
  });

  it("TERM-04 takes the address of terminals from a setting of its own, and from no list", async () => {
    const listed = content({ endpoints: { node_terminal: "https://elsewhere.example.com" } });
    expect((await open(listed)).current().endpoints["node_terminal"]).toBeUndefined();
    const set = content({ terminalUrl: "https://terminals.example.com:18443" });
    expect((await open(set)).current().endpoints["node_terminal"]).toBe("https://terminals.example.com:18443");
  });
});
