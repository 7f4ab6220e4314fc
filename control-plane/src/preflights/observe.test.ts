// Which outcomes become evidence, and as what.

import { type PreflightHop, type PreflightVantage, preflightHops } from "@holdfast/contracts/preflight/checks";
import { describeFailure } from "@holdfast/contracts/preflight/failure";
import { probeCodes } from "@holdfast/contracts/preflight/probe-codes";
import { PREFLIGHT_FORMAT, type PreflightReport } from "@holdfast/contracts/preflight/report";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { describe, expect, it } from "vitest";
import { classify } from "../drift/classify/classify.ts";
import type { Observation } from "../drift/evidence/observation.ts";
import { defaultPolicy } from "../drift/policy.ts";
import { observationsOfPreflight } from "./observe.ts";

const nodeId = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const at = "2026-11-18T10:00:00.000Z";
/** What a probe on the host can find on its way to the API. */
const preflightCodes = [...new Set(Object.values(probeCodes).map(({ api }) => api))];
type Failed = Partial<Record<PreflightHop, [PreflightVantage, ReasonCode]>>;

function seen(failed: Failed, changes: Partial<PreflightReport> = {}, now = new Date(at)) {
  const report = {
    ...{ format: PREFLIGHT_FORMAT, started_at: at, finished_at: at, allocation_id: null, node_id: nodeId },
    ...{ correlation_id: "pf", result: "failed", ssh: null, disk: null },
    hops: preflightHops.map((hop) => {
      const [checked_from, code] = failed[hop] ?? ["node", undefined];
      return { hop, checked_from, detail: "seen", failure: code ? describeFailure(code, nodeId) : null };
    }),
    ...changes,
  } as unknown as PreflightReport;
  return observationsOfPreflight(report, now).map(({ kind, value, observer }) => `${observer} ${kind} ${value}`);
}

describe("evidence of a preflight", () => {
  it("DRIFT-08 has what the host said, as its record", () => {
    expect(seen({ node_runtime_api_reachability: ["node", "server_tls_untrusted"] })).toEqual([
      "preflight diagnostic server_tls_untrusted",
    ]);
  });

  it("DRIFT-08 takes a probe of the terminal listener for the host's word, not for a terminal", () => {
    for (const code of ["terminal_node_stream_timeout", "terminal_env_profile_drift"] as const)
      expect(seen({ node_terminal_reachability: ["node", code] })).toEqual([
        "preflight diagnostic terminal_gateway_unreachable",
      ]);
  });

  it("DRIFT-08 has what a client or the gateway saw of a terminal, but not what the api read or a user may not do", () => {
    expect(seen({ terminal_public_route: ["command_line", "terminal_public_route_missing"] })).toEqual([
      "preflight terminal terminal_public_route_missing",
    ]);
    expect(seen({ terminal_public_route: ["control_plane", "terminal_public_route_missing"] })).toEqual([]);
    expect(seen({ terminal_token_mint: ["control_plane", "terminal_token_mint_failed"] })).toEqual([]);
    expect(seen({ node_heartbeat: ["control_plane", "heartbeat_stale"] })).toEqual([]);
  });

  it("DRIFT-08 claims no running agent where the host found none", () => {
    const stopped = { node_recovery_status: ["node", "agent_down"] } as const;
    expect(seen({ ...stopped, node_runtime_api_reachability: ["node", "api_unreachable"] } as Failed)).toEqual([
      "preflight diagnostic agent_down",
    ]);
  });

  it("DRIFT-08 has SSH, the disk that was measured, and a terminal that works; nothing of it in the future", () => {
    const disk = { used_percent: 40, pressure_percent: 90, diagnostic_path_writable: true };
    const ready = { ssh: "succeeded", disk, result: "ready", allocation_id: nodeId } as const;
    expect(seen({}, ready)).toEqual([
      "preflight terminal ready",
      "preflight ssh succeeded",
      "preflight disk measured",
    ]);
    const ahead = { ...ready, finished_at: "2026-11-18T11:00:00.000Z" } as unknown as PreflightReport;
    const all = observationsOfPreflight({ ...ahead, hops: [], node_id: nodeId } as never, new Date(at));
    for (const { observedAt } of all) expect(observedAt).toEqual(new Date(at));
  });
});

describe("a preflight and the node's page", () => {
  const now = Date.parse(at);
  const known = (kind: Observation["kind"], value: string, ageMs: number) => {
    const observedAt = now - ageMs;
    return { id: kind, kind, value, observer: "control_plane", observedAt, receivedAt: observedAt } as Observation;
  };
  const silent = [known("standing", "active", 3_600_000), known("heartbeat", "received", 600_000)];

  it.for(preflightCodes)("PRE-02 name the same owner for %s", (code) => {
    const { causes } = classify([...silent, known("diagnostic", code, 1_000)], defaultPolicy, now);
    expect(causes.map(({ owner }) => owner)).toEqual([describeFailure(code, nodeId).owner]);
  });
});
