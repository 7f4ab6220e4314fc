// The rules against the failure matrix of the specification: each row's facts give the row's answer.

import { readFileSync } from "node:fs";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { describe, expect, it } from "vitest";
import { type Cause, verdictOf } from "./classify.ts";
import { type Fact, type Facts, factValues } from "./facts.ts";
import { factsOfDiagnostic } from "./reported.ts";

type Row = {
  row: string;
  scenario: string;
  evidence: string[];
  reason: string | null;
  signal: string | null;
  layer: string;
  user_state: string;
  severity: string;
  detect_within_s: number;
  repair_within_s: number | string;
  owner: string;
  next_action: string;
  masks: string[];
  must_not_say: string[];
  confidence?: string;
};
const { rows } = JSON.parse(
  readFileSync(new URL("../../../../contracts/test/failure-matrix.json", import.meta.url), "utf8"),
) as { rows: Row[] };

/** Observations of the matrix that need no fact of their own, and why. */
const implied: Record<string, string> = {
  "node_identity=same": "another one would be another node",
  "node_identity=shared": "live_instances",
  "heartbeats=conflicting": "live_instances",
  "cert_issuer=same": "signing_ca",
  "trust_bundle=current": "no server_tls=verify_failed",
  "trust_bundle=stale": "server_tls=verify_failed with the right addresses",
  "task_wait=blocked_before_api": "server_tls or node_api_connect",
  "enrollment=succeeds": "nothing else changes by it",
  "profile_check=mismatch": "node_addresses",
  "api_failure_report=absent": "the host's own record is all there is",
  "task_type=idempotent": "only such tasks are observed as dispatched_task=past_lease",
  "result=absent": "dispatched_task=past_lease",
  "previous_observation=present": "the app keeps its last status in any case",
  "app_status=unhealthy_from_expired_probe_only": "a newer observation replaces it",
  "failure_key=same": "credential_operation=failed_repeatedly",
  "task_path=healthy": "heartbeat",
  "gateway_close_reason=node_stream_timeout": "gateway_node_stream",
  "cert_validity=inconsistent": "clock",
  "host_evidence=absent": "no fact about the host",
  "automatic_recovery=unavailable_or_failed": "no recovery_token=current",
  "task_claim=succeeds": "result_post",
  "diagnostic_write=no_space": "root_filesystem",
  "other_environment=works": "terminal_address",
  "node_stream_timeout=passed": "error_frame",
};

/** Values of the matrix that stand for several of ours. */
const expansions: Record<string, readonly Facts[]> = {
  "heartbeat=stale_then_current": [{ heartbeat: "stale", silence: "brief" }],
  "heartbeat=stale": [{ heartbeat: "stale", silence: "long" }],
  "node_standing=retired_quarantined_or_revoked": [
    { node_standing: "quarantined" },
    { node_standing: "revoked" },
    { node_standing: "retired" },
  ],
  "recovery_token=missing_expired_or_consumed": [
    { recovery_token: "missing" },
    { recovery_token: "expired" },
    { recovery_token: "consumed" },
  ],
  "host_service=inactive_or_failed": [{ host_service: "inactive" }, { host_service: "failed" }],
  "host_exec=format_error_or_missing": [{ host_exec: "format_error" }, { host_exec: "missing" }],
  "guest_agent=healthy_or_unknown": [{ guest_agent: "healthy" }, {}],
  "runtime_state=stopped_or_exited": [{ runtime_state: "stopped" }],
};

function factsOf(text: string): readonly Facts[] {
  if (Object.hasOwn(implied, text)) return [{}];
  const several = expansions[text];
  if (several) return several;
  const [fact = "", value = ""] = text.split("=");
  if (fact === "host_diagnostic") return [factsOfDiagnostic[value as DiagnosticReason] ?? {}];
  const known = (factValues as Record<string, readonly string[]>)[fact];
  if (!known?.includes(value)) throw new Error(`the rules know no ${text}`);
  return [{ [fact]: value }];
}

/** Every combination of what the row's observations may mean. */
function variantsOf({ evidence }: Row): Facts[] {
  return evidence
    .map(factsOf)
    .reduce<Facts[]>((sofar, next) => sofar.flatMap((one) => next.map((other) => ({ ...one, ...other }))), [{}]);
}

const causesFrom = (facts: Facts): readonly Cause[] =>
  verdictOf({ facts, sources: new Map(), reported: new Map() }).causes;

const variants = rows.flatMap((row) =>
  variantsOf(row).map((facts, index) => [`${row.row}.${index + 1} ${row.scenario}`, row, facts] as const),
);

describe("the failure matrix", () => {
  it.for(variants)("DRIFT-07 DRIFT-13 %s", ([, row, facts]) => {
    const causes = causesFrom(facts);
    const [headline] = causes;
    if (row.reason === null) return void expect(causes).toEqual([]);
    const revoked = facts.node_standing === "revoked" || facts.node_standing === "retired";
    expect(causes.map(({ reason }) => reason)).toEqual([row.reason]);
    expect(headline).toMatchObject({
      ...{ layer: row.layer, userState: row.user_state, severity: row.severity, owner: row.owner },
      // "re_enroll when the identity itself was revoked"
      nextAction: revoked ? "re_enroll" : row.next_action,
      budget: { detect: row.detect_within_s, repair: row.repair_within_s },
      confidence: row.confidence ?? expect.stringMatching(/high|medium/),
      // "the reason code may be published in its place, no other"
      signal: row.signal ?? expect.toBeOneOf([null, row.reason]),
    });
    for (const said of [headline?.reason, headline?.signal]) expect(row.must_not_say).not.toContain(said);
  });

  const agreeing = (a: Facts, b: Facts) =>
    Object.entries(a).every(([fact, value]) => (b[fact as Fact] ?? value) === value);
  const pairs = rows.flatMap((a, index) =>
    rows.slice(index + 1).flatMap((b) => {
      const [one, other] = [variantsOf(a)[0] ?? {}, variantsOf(b)[0] ?? {}];
      return a.reason !== b.reason && agreeing(one, other) ? [{ a, b, facts: { ...one, ...other } }] : [];
    }),
  );

  it("DRIFT-07 lists both of two independent faults, the more urgent one first, and only the cause where one masks the other", () => {
    let both = 0;
    for (const { a, b, facts } of pairs) {
      const found = causesFrom(facts).map(({ reason }) => reason);
      const context = `${a.row} and ${b.row}: ${found.join(", ")}`;
      for (const [cause, symptom] of [
        [a, b],
        [b, a],
      ] as const) {
        if (symptom.reason !== null && cause.reason !== null && cause.masks.includes(symptom.reason)) {
          expect(found, context).not.toContain(symptom.reason);
        }
      }
      const independent = [a, b].every((one) => [a, b].every(({ masks }) => !masks.includes(one.reason ?? "")));
      if (!independent || a.reason === null || b.reason === null) continue;
      if (found.includes(a.reason) && found.includes(b.reason)) both += 1;
      if (a.severity < b.severity) expect(found.indexOf(b.reason), context).not.toBe(0);
      if (b.severity < a.severity) expect(found.indexOf(a.reason), context).not.toBe(0);
    }
    expect(both).toBeGreaterThan(500);
  });
});
