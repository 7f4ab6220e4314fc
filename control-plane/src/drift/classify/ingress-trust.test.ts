// What a rejection by an ingress means, with what is known of the CA that it trusts.

import { describe, expect, it } from "vitest";
import type { Kind, Observation } from "../evidence/observation.ts";
import { defaultPolicy } from "../policy.ts";
import { classify } from "./classify.ts";

const NOW = Date.parse("2026-03-01T03:00:00Z");
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

const saw = (kind: Kind, value: string, ageMs: number, more: Partial<Observation> = {}): Observation =>
  ({
    ...{ id: `${kind}:${ageMs}`, kind, value, observer: "control_plane", observedAt: NOW - ageMs },
    ...{ receivedAt: NOW - ageMs, ...more },
  }) as Observation;
const heartbeat = (ageMs: number) => saw("heartbeat", "received", ageMs);
const certificate = (leftMs: number) =>
  saw("certificate", "issued", HOUR, {
    detail: { not_before: NOW - 24 * HOUR + leftMs, not_after: NOW + leftMs },
  });
const rejected = saw("diagnostic", "ingress_mtls_rejected", 5 * SECOND, { observer: "agent" });
/** First seen a minute ago, and since. */
const trust = (value: "match" | "mismatch") => saw("ca_trust", value, 5 * SECOND, { firstAt: NOW - 60 * SECOND });
const causesOf = (...evidence: Observation[]) =>
  classify(evidence, defaultPolicy, NOW).causes.map(({ reason, confidence }) => [reason, confidence]);

const silent = [heartbeat(HOUR), saw("standing", "active", 2 * HOUR), certificate(12 * HOUR)];

describe("a mismatch between the signing CA and an ingress", () => {
  it("ID-11 is the cause for a node that has not reported since, and for none that has", () => {
    expect(causesOf(...silent, trust("mismatch"))).toEqual([["cert_untrusted_by_ingress", "high"]]);
    // Reports are a minute apart: its last one may be from before.
    const [, ...identity] = silent;
    expect(causesOf(heartbeat(70 * SECOND), ...identity, trust("mismatch"))).toEqual([
      ["cert_untrusted_by_ingress", "high"],
    ]);
    expect(causesOf(heartbeat(30 * SECOND), ...identity, trust("mismatch"))).toEqual([]);
    const closed = saw("connection", "closed", 20 * SECOND);
    expect(causesOf(heartbeat(30 * SECOND), closed, ...identity, trust("mismatch"))).toEqual([
      ["cert_untrusted_by_ingress", "high"],
    ]);
  });
});

describe("a node whose agent was rejected by an ingress", () => {
  it("ID-11 has the CA as its likely cause, unless canaries are accepted: then its own certificate", () => {
    expect(causesOf(...silent, rejected)).toEqual([["cert_untrusted_by_ingress", "medium"]]);
    expect(causesOf(...silent, rejected, trust("mismatch"))).toEqual([["cert_untrusted_by_ingress", "high"]]);
    expect(causesOf(...silent, rejected, trust("match"))).toEqual([["node_agent_auth_failed", "medium"]]);
  });

  it("ID-14 has an expired certificate as its cause, if it has one", () => {
    const expired = [heartbeat(HOUR), saw("standing", "active", 2 * HOUR), certificate(-HOUR)];
    expect(causesOf(...expired, rejected)).toEqual([["cert_expired", "high"]]);
    expect(causesOf(...expired, rejected, trust("match"))).toEqual([["cert_expired", "high"]]);
  });
});
