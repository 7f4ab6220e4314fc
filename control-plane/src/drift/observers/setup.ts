// What a heartbeat says about the agent and its host apart from findings: addresses in use, version, disk, files, starts,
// and where the host is. Nearly all heartbeats repeat the one before: those cost a comparison of texts and no statement.

import type { AgentSetup, Heartbeat } from "@holdfast/contracts/node/protocol";
import type { Log } from "@holdfast/service/log";
import { isOlderAgent } from "../../agent-release/versions.ts";
import { isSamePlace, type NetworkRecord } from "../../nodes/directory/network-facts.ts";
import type { PublishedProfile } from "../../profiles/published.ts";
import type { Policy } from "../classify/derive.ts";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";
import { compareWithProfile } from "./compare-profile.ts";
import { createMemory } from "./memory.ts";

export type SetupReport = {
  nodeId: string;
  heartbeat: { facts: Pick<Heartbeat["facts"], "agent_version">; setup?: AgentSetup | undefined };
  at: Date;
  instanceId: string;
  bootId: string;
};

export type SetupOptions = {
  recorder: Recorder;
  /** Of the addresses that are published at present. */
  acceptedProfiles(): Promise<readonly PublishedProfile[]>;
  network: NetworkRecord;
  requiredVersion: string;
  policy: Pick<Policy, "diskFullPercent">;
  log: Pick<Log, "warn">;
};

export function observeSetups(options: SetupOptions): (report: SetupReport) => void {
  const { recorder, network, log } = options;
  const memory = createMemory();

  const compareAddress = async ({ nodeId, at }: SetupReport, setup: AgentSetup): Promise<NewObservation[]> => {
    const { source_address: address, provider, network_side: networkSide } = setup;
    const recorded = await network.report({ nodeId, address, provider, networkSide });
    if (address === null) return [];
    const common = { nodeId, kind: "address", observer: "agent", observedAt: at } as const;
    if (recorded === null || isSamePlace(recorded, address)) {
      return [{ ...common, value: "same", detail: { address }, steady: true }];
    }
    // The record is up to date now: the next heartbeat confirms it.
    memory.forget(nodeId);
    return [{ ...common, value: "changed", detail: { recorded, reported: address } }];
  };

  return (report) => {
    const { nodeId, heartbeat, at } = report;
    const { setup } = heartbeat;
    const own = [
      ...buildOf(report, options.requiredVersion),
      ...startsOf(report),
      ...(setup ? [...filesOf(nodeId, setup, at), ...diskOf(nodeId, setup, at)] : []),
    ];
    if (!memory.isNews(nodeId, signatureOf(own, setup, options.policy))) return;
    const observe = async () => {
      const compared = setup
        ? [
            ...compareWithProfile({ nodeId, urls: setup.urls, at }, await options.acceptedProfiles()),
            ...(await compareAddress(report, setup)),
          ]
        : [];
      recorder.observe(nodeId, [...own, ...compared]);
    };
    observe().catch((error: unknown) => {
      memory.forget(nodeId);
      log.warn({ err: error, node_id: nodeId }, "could not store what a heartbeat reports; the next one does");
    });
  };
}

/** What is handed on when it changes. The usage of a disk changes all the time: which limits it has reached counts. */
function signatureOf(
  own: readonly NewObservation[],
  setup: AgentSetup | undefined,
  { diskFullPercent }: SetupOptions["policy"],
): string {
  const { urls, source_address, provider, network_side, root_disk } = setup ?? {};
  const { used_percent: used = 0, pressure_percent: pressure = 100 } = root_disk ?? {};
  const values = own.map(({ value }) => value);
  return JSON.stringify([
    ...[values, urls, source_address, provider, network_side],
    ...[used >= pressure, used >= diskFullPercent],
  ]);
}

function buildOf({ nodeId, heartbeat, at }: SetupReport, required: string): NewObservation[] {
  const { agent_version: version } = heartbeat.facts;
  const older = isOlderAgent(version, required);
  if (older === undefined) return [];
  const value = older ? "older_than_required" : "supported";
  const common = { nodeId, kind: "agent_build", observer: "control_plane", observedAt: at, steady: true } as const;
  return [{ ...common, value, detail: { version, required } }];
}

function startsOf({ nodeId, at, instanceId, bootId }: SetupReport): NewObservation[] {
  const common = { nodeId, kind: "started", observer: "agent", observedAt: at, steady: true } as const;
  return [
    { ...common, key: "agent", value: instanceId },
    { ...common, key: "host", value: bootId },
  ];
}

function filesOf(nodeId: string, { unit_sha256, env_sha256 }: AgentSetup, at: Date): NewObservation[] {
  const common = { nodeId, kind: "host_file", observer: "agent", observedAt: at, steady: true } as const;
  return [
    { ...common, key: "unit", value: unit_sha256 ?? "missing" },
    { ...common, key: "env", value: env_sha256 ?? "missing" },
  ];
}

function diskOf(nodeId: string, { root_disk }: AgentSetup, at: Date): NewObservation[] {
  if (root_disk === null) return [];
  const common = { nodeId, kind: "disk", observer: "agent", observedAt: at, steady: true } as const;
  return [{ ...common, value: "measured", detail: root_disk }];
}
