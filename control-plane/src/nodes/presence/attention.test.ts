import { runbookOf } from "@holdfast/contracts/reasons/catalogue";
import { placeOf } from "@holdfast/contracts/reasons/hops";
import { diagnosticReasonNames, diagnosticReasons, ownerGroupOf } from "@holdfast/contracts/reasons/node";
import { describe, expect, it } from "vitest";
import { attentionOf, type NodeCondition } from "./attention.ts";

const now = new Date("2030-01-01T12:00:00Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);
const HOUR = 3600;
const facts = { now, staleAfterSeconds: 120 };

const well: NodeCondition = {
  position: "active",
  reason: null,
  createdAt: ago(30 * 24 * HOUR),
  heartbeatAt: ago(5),
  clockSkewMs: 0,
  certificate: { notBefore: ago(6 * HOUR), notAfter: ago(-18 * HOUR) },
  findings: [],
};
const codes = (changes: Partial<NodeCondition>) =>
  attentionOf({ ...well, ...changes }, facts).map(({ code }) => code);
/** A day's certificate of this age. */
const aged = (seconds: number) => ({ notBefore: ago(seconds), notAfter: ago(seconds - 24 * HOUR) });

const lost = (seconds: number, why = "connection_lost") => ({ at: ago(seconds), why });

describe("what to look at", () => {
  it("AGENT-06 is nothing about a node that is well", () => {
    expect(codes({})).toEqual([]);
    expect(codes({ position: "draining" })).toEqual([]);
    expect(codes({ position: "enrolling", heartbeatAt: undefined, createdAt: ago(60) })).toEqual([]);
  });

  it.for([
    ["heartbeat_stale", { heartbeatAt: ago(121) }, { heartbeatAt: ago(120) }],
    [
      "never_heard",
      { heartbeatAt: undefined, createdAt: ago(121) },
      { heartbeatAt: undefined, createdAt: ago(120) },
    ],
    ["connection_lost", { disconnection: lost(11) }, { disconnection: lost(10) }],
    ["connection_lost", { disconnection: lost(130), heartbeatAt: ago(140) }, { heartbeatAt: ago(100) }],
    ["heartbeat_in_future", { heartbeatAt: ago(-61) }, { heartbeatAt: ago(-60) }],
    ["cert_renewal_overdue", { certificate: aged(18 * HOUR + 1) }, { certificate: aged(18 * HOUR) }],
    ["cert_renewal_overdue", { certificate: aged(24 * HOUR) }, { certificate: aged(12 * HOUR) }],
    ["cert_expired", { certificate: aged(24 * HOUR + 1) }, { certificate: undefined }],
    ["clock_skew", { clockSkewMs: 60_001 }, { clockSkewMs: 60_000 }],
    ["clock_skew", { clockSkewMs: -60_001 }, { clockSkewMs: -60_000 }],
    ["node_quarantined", { position: "quarantined" }, { position: "active" }],
    ["identity_revoked", { position: "revoked" }, { position: "active" }],
  ] satisfies [string, Partial<NodeCondition>, Partial<NodeCondition>][])(
    "AGENT-06 is %s from its limit on, and not before",
    ([code, beyond, within]) => {
      expect(codes(beyond)).toEqual([code]);
      expect(codes(within)).toEqual([]);
    },
  );

  it.for([
    ["closed_by_agent", "The agent closed its connection 30 seconds ago."],
    ["connection_lost", "The connection of the agent was lost 30 seconds ago."],
    ["unresponsive", "The agent stopped responding, and its connection was closed 30 seconds ago."],
    ["refused", "The server refused the agent's connection 30 seconds ago."],
    ["of_a_newer_server", "The connection of the agent was lost 30 seconds ago."],
  ])("AGENT-06 says how a connection ended: %s", ([why = "", message]) => {
    expect(attentionOf({ ...well, disconnection: lost(30, why) }, facts)).toMatchObject([{ message }]);
  });

  it("AGENT-06 names the last heartbeat of a silent node by its correlation id", () => {
    const [item] = attentionOf({ ...well, heartbeatAt: ago(121), heartbeatId: "of-the-heartbeat" }, facts);
    expect(item).toMatchObject({
      code: "heartbeat_stale",
      hop: "node_heartbeat",
      correlation_id: "of-the-heartbeat",
    });
  });

  it("ID-02 says that the node's certificate is refused, until a heartbeat comes with a good one", () => {
    const refusal = { at: ago(10), code: "identity_revoked", correlationId: "of-the-refusal" };
    const [item] = attentionOf({ ...well, heartbeatAt: ago(11), refusal }, facts);
    expect(item).toMatchObject({
      ...{ code: "auth_failed", hop: "node_recovery_status", signal: "node_agent_auth_failed" },
      correlation_id: "of-the-refusal",
      message: expect.stringMatching(
        /rejected this node's certificate 10 seconds ago\. .*certificate was replaced\.$/,
      ),
    });
    expect(codes({ refusal, heartbeatAt: ago(9) })).toEqual([]);
    expect(codes({ refusal: { ...refusal, code: "cert_expired" }, heartbeatAt: ago(11) })).toEqual([
      "cert_expired",
    ]);
    expect(codes({ refusal, heartbeatAt: ago(11), position: "revoked" })).toEqual(["identity_revoked"]);
  });

  it("ID-03 alarms of a missed renewal six hours before the certificate ends", () => {
    const certificate = aged(18 * HOUR + 1);
    const [item] = attentionOf({ ...well, certificate }, facts);
    expect(item?.message).toContain("expires in 5 hours");
  });

  it("ID-09 gives the operator's reason for a fence or a revocation", () => {
    for (const position of ["quarantined", "revoked"] as const) {
      const [item] = attentionOf({ ...well, position, reason: "disk swapped" }, facts);
      expect(item?.message).toContain("disk swapped");
    }
  });

  it("ID-09 says nothing of the certificate of a revoked node, and nothing at all of a retired one", () => {
    const ended = { certificate: aged(25 * HOUR), heartbeatAt: ago(26 * HOUR) };
    expect(codes({ position: "revoked", ...ended })).toEqual(["identity_revoked", "heartbeat_stale"]);
    expect(codes({ position: "retired", ...ended, clockSkewMs: 1e9 })).toEqual([]);
  });

  it.for(diagnosticReasonNames)("AGENT-05 is what the agent found: %s", (reason) => {
    const found = { reason, detail: "seen at 12:00", correlation_id: "of-its-record" };
    const items = attentionOf({ ...well, findings: [found] }, facts);
    const {
      title,
      owner: owner_id,
      severity,
      message,
      nextStep,
      nextAction,
      at,
      signal,
    } = diagnosticReasons[reason];
    const owner = ownerGroupOf(reason);
    const words = { title, message: `${message} seen at 12:00`, next_step: nextStep, next_action: nextAction };
    const presented = { ...{ code: reason, ...placeOf(at), signal, owner, owner_id, severity }, ...words };
    const all = { ...presented, runbook: runbookOf(reason), correlation_id: "of-its-record" };
    expect(items).toEqual(owner === "nobody" ? [] : [all]);
  });

  it("AGENT-05 shows what a newer agent found, and each thing once", () => {
    const [unknown] = attentionOf({ ...well, findings: [{ reason: "moon_phase", detail: "full" }] }, facts);
    expect(unknown).toMatchObject({ code: "moon_phase", title: "Moon phase", severity: null, owner: "node" });
    expect(codes({ clockSkewMs: 90_000, findings: [{ reason: "clock_skew", detail: "90 s" }] })).toEqual([
      "clock_skew",
    ]);
  });

  it("AGENT-05 names what happened and what to do, always", () => {
    const all = attentionOf(
      {
        ...well,
        position: "quarantined",
        heartbeatAt: ago(3 * 24 * HOUR),
        certificate: aged(48 * HOUR),
        clockSkewMs: -600_000,
        findings: [{ reason: "disk_full", detail: "" }],
      },
      facts,
    );
    expect(all.map(({ code }) => code)).toEqual([
      "node_quarantined",
      "cert_expired",
      "heartbeat_stale",
      "clock_skew",
      "disk_full",
    ]);
    for (const item of all) {
      expect(item.message).toMatch(/\.$/);
      expect(item.next_step.length).toBeGreaterThan(10);
    }
    expect(all[2]?.message).toBe("The last heartbeat came 3 days ago.");
    expect(all[3]?.message).toBe("The node's clock is 10 minutes behind the server's.");
  });
});
