import type { Layers } from "@holdfast/contracts/endpoints/drift";
import {
  diagnosticReasonNames,
  diagnosticReasons,
  isProblem,
  ownerGroupOf,
} from "@holdfast/contracts/reasons/node";
import { describe, expect, it } from "vitest";
import { classify } from "../classify/classify.ts";
import type { Kind, Observation, Values } from "../evidence/observation.ts";
import { defaultPolicy as policy } from "../policy.ts";
import { attentionOf } from "./attention.ts";
import { currentVerdict } from "./current.ts";
import { agentStatusOf, layersOf } from "./layers.ts";
import { type StoredCause, saysTheSame, storedCause } from "./stored.ts";

const now = Date.parse("2030-01-01T12:00:00Z");
const HOUR = 3_600_000;
let count = 0;

type Over = Partial<Observation> & { ageMs?: number };
function saw<K extends Kind>(kind: K, value: Values[K], { ageMs = 1_000, ...rest }: Over = {}): Observation {
  count += 1;
  const at = now - ageMs;
  const common = {
    id: `${kind}:${count}`,
    kind,
    value,
    observer: "control_plane",
    observedAt: at,
    receivedAt: at,
  };
  return { ...common, ...rest } as Observation;
}

const enrolled = saw("standing", "active", { ageMs: 30 * 24 * HOUR });
const heard = saw("heartbeat", "received", { ageMs: 5_000, correlationId: "of-the-heartbeat" });
const finding = (key: string, text = "", correlationId?: string) =>
  saw("finding", "present", { key, detail: { text }, correlationId });
const certificate = (ageHours: number) =>
  saw("certificate", "issued", {
    ageMs: 2 * HOUR,
    detail: { not_before: now - ageHours * HOUR, not_after: now - (ageHours - 24) * HOUR },
  });

const stored = (...evidence: Observation[]) =>
  classify(evidence, policy, now).causes.map((cause) => storedCause(cause, evidence));
/** As it is read again from the database. */
const shown = (...evidence: Observation[]) =>
  attentionOf(JSON.parse(JSON.stringify(stored(enrolled, ...evidence))) as StoredCause[], now);

describe("what a stored verdict presents", () => {
  it("DASH-01 is nothing about a healthy node", () => {
    expect(shown(heard, certificate(6))).toEqual([]);
  });

  it("DASH-01 is code, reason, severity, owner, user state and since of each cause, the worst first", () => {
    const [first, second] = shown(heard, finding("link_slow"), finding("disk_full", "0 B free", "its-record"));
    expect(first).toMatchObject({
      ...{ code: "disk_full", reason: "disk_full", title: "Disk full", severity: "P1", confidence: "high" },
      ...{ owner: "node", owner_id: "node_runtime", user_state: "temporary", next_action: "free_disk" },
      ...{ hop: "node_readiness", hop_detail: "host_disk", signal: "disk_full", correlation_id: "its-record" },
      since: new Date(now - 1_000).toISOString(),
      message: expect.stringMatching(/^The disk that holds .* 0 B free$/),
    });
    expect(second).toMatchObject({ code: "link_slow", severity: "P2" });
  });

  it("DASH-02 CHAOS-02 names the hop of a terminal that does not open", () => {
    const failed = saw("terminal", "terminal_pty_failed", { ageMs: 1_000, correlationId: "its-request" });
    expect(shown(heard, certificate(6), failed)).toMatchObject([
      { code: "terminal_pty_failed", hop: "workload_terminal_startup_failure", correlation_id: "its-request" },
    ]);
  });

  it.each<[string, string, Observation[]]>([
    [
      "heartbeat_stale",
      "The last heartbeat came 3 days ago.",
      [saw("heartbeat", "received", { ageMs: 73 * HOUR })],
    ],
    [
      "connection_lost",
      "The agent closed its connection 30 seconds ago.",
      [
        saw("heartbeat", "received", { ageMs: 40_000 }),
        saw("connection", "closed", { ageMs: 30_000, detail: { why: "closed_by_agent" } }),
      ],
    ],
    ["never_heard", "The node was enrolled 30 days ago and has never sent a heartbeat.", []],
    [
      "heartbeat_in_future",
      "The time of the last heartbeat is 14 hours in the future: a clock of the control plane was wrong. Whether the node is online is unknown.",
      [saw("heartbeat", "received", { ageMs: -14 * HOUR })],
    ],
    ["cert_expired", "The node's certificate expired 2 hours ago.", [heard, certificate(26)]],
    [
      "cert_renewal_overdue",
      "The node's certificate should have been renewed by now. It expires in 4 hours.",
      [heard, certificate(20)],
    ],
    [
      "auth_failed",
      "The server rejected this node's certificate 1 second ago. The server no longer accepts this node's identity: it was revoked, or its certificate was replaced.",
      [
        saw("heartbeat", "received", { ageMs: HOUR }),
        saw("refusal", "identity_revoked", { detail: { issuer: "ours" } }),
      ],
    ],
    [
      "clock_skew",
      "The node's clock is 10 minutes behind the server's.",
      [heard, saw("clock", "measured", { detail: { skew_ms: -600_000 } })],
    ],
    [
      "node_quarantined",
      "An operator quarantined this node: it gets no tasks until it is reactivated. Reason given: odd",
      [heard, saw("standing", "quarantined", { detail: { text: "Reason given: odd" } })],
    ],
    [
      "moon_phase",
      "The agent reports a reason that this server does not know. full",
      [heard, finding("moon_phase", "full")],
    ],
  ])("AGENT-06 says what was measured: %s", (code, message, evidence) => {
    expect(shown(...evidence).map((item) => [item.code, item.message])).toEqual([[code, message]]);
  });

  /** By the heartbeat that brings the finding: the agent runs, and is accepted. */
  const disproved: string[] = ["agent_down", "auth_failed", "edge_rate_limited", "identity_revoked"].concat(
    "identity_retired",
    "edge_terminates_tls",
    "ingress_mtls_rejected",
    "node_quarantined",
    // The server knows what it refused.
    "recovery_refused",
    // The result says why.
    "task_refused",
  );

  it.each(diagnosticReasonNames.filter(isProblem))("AGENT-05 is what an agent found: %s", (code) => {
    const items = shown(heard, finding(code, "", "of-its-record"));
    // What the control plane knows better is left out; all else is there, under its own code or its cause's.
    for (const item of items) {
      expect(item.correlation_id).toBe("of-its-record");
      expect([code, diagnosticReasons[code].signal]).toContain(item.code);
      if (item.code === code) expect(item.owner).toBe(ownerGroupOf(code));
      expect(item.message).toMatch(/\.$/);
      expect(item.next_step.length).toBeGreaterThan(10);
    }
    expect(items).toHaveLength(disproved.includes(code) ? 0 : 1);
  });

  it("AUDIT-01 has the id that leads to the audit: of the last heartbeat, the refusal, or the agent's own record", () => {
    const old = { ...heard, observedAt: now - HOUR };
    expect(shown(old)[0]?.correlation_id).toBe("of-the-heartbeat");
    const refusal = saw("refusal", "identity_revoked", { correlationId: "of-the-refusal" });
    expect(shown(old, refusal)[0]?.correlation_id).toBe("of-the-refusal");
    const skewed = saw("clock", "measured", { detail: { skew_ms: 90_000 } });
    expect(shown(heard, skewed)[0]?.correlation_id).toBeNull();
    expect(shown(heard, skewed, finding("clock_skew", "", "of-the-record"))).toMatchObject([
      { code: "clock_skew", correlation_id: "of-the-record" },
    ]);
  });

  it("DRIFT-04 reads without what an older version did not store", () => {
    const [cause] = stored(enrolled, heard, finding("disk_full", "0 B"));
    if (!cause) throw new Error("there is no cause");
    const { observed: _, correlationId: __, ...older } = cause;
    expect(attentionOf([older], now)).toMatchObject([{ code: "disk_full", correlation_id: null }]);
    expect(saysTheSame([older], [cause])).toBe(true);
  });
});

describe("management, workload and access", () => {
  const layers = (...evidence: Observation[]) => layersOf(classify(evidence, policy, now), evidence, now);

  it.each<[string, Observation[], Layers]>([
    ["of a node that reports", [heard], { management: "working", workload: "unknown", access: "unknown" }],
    ["of one never heard of", [], { management: "unknown", workload: "unknown", access: "unknown" }],
    [
      "of one offline, whose app was seen running a minute ago",
      [{ ...heard, observedAt: now - HOUR }, saw("app_status", "running", { ageMs: 60_000 })],
      { management: "impaired", workload: "working", access: "unknown" },
    ],
    [
      "of one whose app was seen too long ago",
      [heard, saw("app_status", "running", { ageMs: HOUR })],
      { management: "working", workload: "unknown", access: "unknown" },
    ],
    [
      "of one whose app stopped since",
      [heard, saw("app_status", "running", { ageMs: 60_000 }), saw("app_status", "stopped")],
      { management: "working", workload: "impaired", access: "unknown" },
    ],
    [
      "of one with a terminal",
      [heard, saw("terminal", "ready")],
      { management: "working", workload: "unknown", access: "working" },
    ],
    [
      "of one whose terminals fail",
      [heard, saw("terminal", "terminal_node_stream_mtls_failed")],
      { management: "working", workload: "unknown", access: "impaired" },
    ],
  ])("DRIFT-05 are three, and work only by fresh evidence: %s", (_, evidence, expected) => {
    expect(layers({ ...enrolled, observedAt: now - 10_000 }, ...evidence)).toEqual(expected);
  });

  it.each([
    ["healthy", [heard]],
    ["healthy", [heard, finding("link_slow")]],
    ["stale", [{ ...heard, observedAt: now - HOUR }]],
    ["auth_failed", [{ ...heard, observedAt: now - HOUR }, saw("refusal", "identity_revoked")]],
    ["api_unreachable", [{ ...heard, observedAt: now - HOUR }, saw("diagnostic", "api_name_unresolved")]],
    ["api_unreachable", [{ ...heard, observedAt: now - HOUR }, saw("diagnostic", "server_tls_untrusted")]],
    ["task_result_failed", [heard, finding("task_result_failed")]],
    // Quarantined, and authenticated all the same.
    ["healthy", [heard, saw("standing", "quarantined")]],
    ["unknown", []],
  ])("DASH-01 the agent is %s", (expected, evidence: Observation[]) => {
    const { causes, reporting } = classify([enrolled, ...evidence], policy, now);
    expect(agentStatusOf(causes, { reporting, heard: evidence.length > 0 })).toBe(expected);
  });
});

describe("addresses that match the profile", () => {
  const matches = ["api", "terminal"].map((key) => ({ ...saw("profile", "matches"), key }) as Observation);
  const found = (...evidence: Observation[]) =>
    classify([enrolled, heard, ...matches, ...evidence], policy, now).causes.map(
      ({ reason, nextAction }) => `${reason} ${nextAction}`,
    );

  it("DRIFT-03 leave the way to the terminal gateway as what is to be repaired", () => {
    expect(found(saw("terminal", "terminal_node_stream_timeout"))).toEqual([
      "terminal_node_stream_timeout repair_network",
    ]);
  });

  it("DRIFT-03 do not disprove an agent that failed to adopt others, nor a terminal that met somebody else there", () => {
    const drift = ["endpoint_profile_drift repair_endpoint_profile"];
    expect(found(finding("endpoint_profile_drift"))).toEqual(drift);
    expect(found(saw("terminal", "terminal_env_profile_drift"))).toEqual(drift);
  });
});

describe("a hop between people and a shell", () => {
  const atHop = (...evidence: Observation[]) =>
    shown(heard, ...evidence).map(({ hop, signal, code, correlation_id }) => [hop, signal, code, correlation_id]);

  it("DASH-02 DRIFT-03 is the terminal's for an address of the terminal gateway, not the API's", () => {
    const differs = { ...saw("profile", "differs"), key: "terminal" } as Observation;
    const drift = ["node_terminal_reachability", "terminal_env_profile_drift", "terminal_env_profile_drift"];
    expect(atHop(differs)).toEqual([[...drift, null]]);
    const failed = saw("terminal", "terminal_env_profile_drift", { correlationId: "of-the-terminal" });
    expect(atHop(differs, failed)).toEqual([[...drift, "of-the-terminal"]]);
  });

  it("DASH-02 TERM-07 is the client's WebSocket when its gateway cannot reach Redis, in the words of that", () => {
    const failed = saw("terminal", "terminal_binding_unavailable", { correlationId: "of-the-terminal" });
    expect(atHop(failed)).toEqual([
      [
        "browser_terminal_ws",
        "terminal_gateway_upgrade_failed",
        "terminal_binding_unavailable",
        "of-the-terminal",
      ],
    ]);
  });
});

describe("a stored verdict beside what is known of the connection", () => {
  const working: Layers = { management: "working", workload: "working", access: "unknown" };
  const impaired: Layers = { ...working, management: "impaired" };
  const silence = stored(enrolled, { ...heard, observedAt: now - HOUR });
  const full = stored(enrolled, heard, finding("disk_full"));
  const verdict = (causes: StoredCause[], reporting: boolean, layers: Layers) => ({
    ...{ causes, reporting, layers, userState: "normal" as const },
  });
  const codes = ({ causes }: { causes: readonly StoredCause[] }) => causes.map(({ spokenAs }) => spokenAs);

  it("DASH-01 stands while both agree", () => {
    for (const [one, online] of [
      [verdict(full, true, working), true],
      [verdict(silence, false, impaired), false],
    ] as const) {
      expect(currentVerdict(one, { online })).toEqual({ ...one, pending: false });
    }
  });

  it("DASH-01 of a node that went offline since: its cause is pending, and nothing is green", () => {
    const shownNow = currentVerdict(verdict(full, true, working), { online: false });
    expect(shownNow).toMatchObject({ pending: true, layers: { management: "unknown", workload: "working" } });
    expect(codes(shownNow)).toEqual(["disk_full"]);
  });

  it("DASH-01 of a node that came back since: not offline any more, and not yet healthy", () => {
    const back = currentVerdict(verdict(silence, false, impaired), { online: true });
    expect(back).toMatchObject({ causes: [], pending: true, layers: { management: "unknown" } });
    const other = currentVerdict(verdict([...full, ...silence], false, impaired), { online: true });
    expect(codes(other)).toEqual(["disk_full"]);
    expect(other).toMatchObject({ pending: true, layers: { management: "impaired" } });
  });

  it("DASH-01 of a node that was never classified: nothing is known", () => {
    expect(currentVerdict(undefined, { online: true })).toMatchObject({
      ...{ causes: [], pending: false, layers: { management: "unknown", workload: "unknown", access: "unknown" } },
    });
  });
});
