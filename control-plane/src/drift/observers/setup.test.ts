import type { AgentSetup } from "@holdfast/contracts/node/protocol";
import { describe, expect, it } from "vitest";
import { someSetup } from "../../../../testkit/agent/facts.ts";
import type { NetworkFacts } from "../../nodes/directory/network-facts.ts";
import type { NewObservation } from "../evidence/write.ts";
import { observeSetups, type SetupReport } from "./setup.ts";

function observing(options: { fails?: boolean } = {}) {
  const seen: NewObservation[][] = [];
  const reported: NetworkFacts[] = [];
  const warnings: unknown[] = [];
  const record = new Map<string, string | null>();
  let fails = options.fails ?? false;
  const observe = observeSetups({
    recorder: { observe: (_nodeId, observations) => void seen.push([...observations]) },
    acceptedProfiles: async () => {
      if (fails) throw new Error("the database is not available");
      const publishedAt = new Date(0);
      return [{ version: 4, publishedAt, endpoints: { node_api: "https://a", node_terminal: "https://t" } }];
    },
    network: {
      report: async (facts) => {
        reported.push(facts);
        const before = record.get(facts.nodeId) ?? null;
        if (facts.address !== null) record.set(facts.nodeId, facts.address);
        return before;
      },
    },
    ...{ requiredVersion: "0.2.0", policy: { diskFullPercent: 98 } },
    log: { warn: (...given: unknown[]) => void warnings.push(given) },
  });
  const beat = async (
    changes: Partial<AgentSetup> | undefined,
    { version = "0.2.0", ...ids }: Partial<Pick<SetupReport, "instanceId" | "bootId">> & { version?: string } = {},
  ) => {
    const before = seen.length;
    observe({
      ...{ nodeId: "n", at: new Date(), instanceId: "i1", bootId: "b1", ...ids },
      heartbeat: {
        facts: { agent_version: version },
        ...(changes
          ? { setup: { ...someSetup, urls: { node_api: "https://a", node_terminal: "https://t" }, ...changes } }
          : {}),
      },
    });
    await new Promise((resolve) => setImmediate(resolve));
    return seen
      .slice(before)
      .flat()
      .map(({ kind, key, value }) => [kind, key, value].filter(Boolean).join(" "));
  };
  return { beat, seen, reported, warnings, recover: () => (fails = false) };
}

const ordinary = [
  ...[
    "agent_build supported",
    "started agent i1",
    "started host b1",
    "host_file unit missing",
    "host_file env missing",
  ],
  ...["disk measured", "profile api matches", "profile terminal matches"],
];
const disk = (used_percent: number) => ({ root_disk: { used_percent, pressure_percent: 90 } });

describe("what a heartbeat says about an agent", () => {
  it("DRIFT-01 is handed on with a node's first heartbeat, and then only when it changed", async () => {
    const { beat, reported } = observing();
    expect(await beat({})).toEqual(ordinary);
    expect(await beat({})).toEqual([]);
    expect(reported).toHaveLength(1);
    expect(await beat({}, { instanceId: "i2" })).toContain("started agent i2");
    expect(await beat({}, { instanceId: "i2", bootId: "b2" })).toContain("started host b2");
    const again = { instanceId: "i2", bootId: "b2" };
    expect(await beat({ env_sha256: "0".repeat(64) }, again)).toContain(`host_file env ${"0".repeat(64)}`);
    expect(await beat({ provider: "acme", env_sha256: "0".repeat(64) }, again)).not.toEqual([]);
    expect(reported.at(-1)).toMatchObject({ provider: "acme", networkSide: null });
  });

  it("DRIFT-01 says that addresses differ from the profile as soon as they do", async () => {
    const { beat } = observing();
    await beat({});
    const moved = { urls: { node_api: "https://old", node_terminal: "https://t" } };
    expect(await beat(moved)).toEqual(expect.arrayContaining(["profile api differs", "profile terminal matches"]));
    expect(await beat(moved)).toEqual([]);
    expect(await beat({})).toContain("profile api matches");
  });

  it("DRIFT-15 says which agents are older than required, and nothing of versions that are none", async () => {
    const { beat } = observing();
    expect(await beat({}, { version: "0.1.9" })).toContain("agent_build older_than_required");
    expect(await beat({}, { version: "0.2.0" })).toContain("agent_build supported");
    expect((await beat({}, { version: "nightly" })).join()).not.toContain("agent_build");
  });

  it("DRIFT-13 says how full the disk is when it reaches or leaves a limit, not whenever that changes", async () => {
    const { beat } = observing();
    await beat(disk(40));
    expect(await beat(disk(89))).toEqual([]);
    expect(await beat(disk(90))).toContain("disk measured");
    expect(await beat(disk(97))).toEqual([]);
    expect(await beat(disk(98))).toContain("disk measured");
    expect(await beat(disk(99))).toEqual([]);
    expect(await beat(disk(50))).toContain("disk measured");
  });

  it("DRIFT-15 an address that differs from the record is a change; the next heartbeat confirms the new one", async () => {
    const { beat, seen } = observing();
    expect(await beat({ source_address: "10.0.0.1" })).toContain("address same");
    expect(await beat({ source_address: "10.0.0.2" })).toContain("address changed");
    expect(seen.at(-1)?.at(-1)).toMatchObject({ detail: { recorded: "10.0.0.1", reported: "10.0.0.2" } });
    expect(await beat({ source_address: "10.0.0.2" })).toContain("address same");
    expect(await beat({ source_address: "10.0.0.2" })).toEqual([]);
    expect((await beat({ source_address: null })).join()).not.toContain("address");
    expect(await beat({ source_address: "10.0.0.2" })).toContain("address same");
  });

  it("AGENT-06 an agent that does not report it yet still has a version, and starts", async () => {
    const { beat, reported } = observing();
    expect(await beat(undefined)).toEqual(["agent_build supported", "started agent i1", "started host b1"]);
    expect(await beat(undefined)).toEqual([]);
    expect(reported).toEqual([]);
  });

  it("DRIFT-01 is tried again with the next heartbeat when it could not be compared", async () => {
    const { beat, warnings, recover } = observing({ fails: true });
    expect(await beat({})).toEqual([]);
    expect(warnings).toHaveLength(1);
    recover();
    expect(await beat({})).toEqual(ordinary);
  });
});
