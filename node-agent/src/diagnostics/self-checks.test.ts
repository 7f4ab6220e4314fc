import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findings, type SelfCheckFacts, span } from "./self-checks.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
const HOUR = 3_600_000;
const NODE = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const profile = {
  name: "default",
  version: 3,
  endpoints: { node_api: "https://api.example.com:18442" },
  resolve: {},
  ca_sha256: ["aa"],
};

const well: SelfCheckFacts = {
  now: NOW,
  agent: { found: { node_id: NODE, profile } },
  identity: { found: { nodeId: NODE, certificate: { notBefore: NOW - HOUR, notAfter: NOW + 23 * HOUR } } },
  trust: { found: [] },
  apiUrl: "https://api.example.com:18442/",
  clockSkewSeconds: 0,
  stateDir: "writable",
  rootUsedPercent: 40,
  diskPressurePercent: 90,
};
const certificate = (notBefore: number, notAfter: number, nodeId = NODE): Partial<SelfCheckFacts> => ({
  identity: { found: { nodeId, certificate: { notBefore, notAfter } } },
});
const expired = certificate(NOW - 30 * HOUR, NOW - 6 * HOUR);
const problem = (reason: "identity_key_missing" | "trust_bundle_invalid") => ({
  problem: { reason, detail: "so" },
});

type Row = [name: string, facts: Partial<SelfCheckFacts>, reasons: string[], detail?: string];
const rows: Row[] = [
  ["all is well", {}, []],
  ["no history", { diagnosticsProblem: "EISDIR" }, ["diagnostics_unwritable"], "EISDIR"],
  ["no history on a full disk", { diagnosticsProblem: "ENOSPC", stateDir: "full" }, ["disk_full"]],
  ["before the first answer nothing is known of the clock", { clockSkewSeconds: undefined }, []],
  ["expired", expired, ["cert_expired"], "it expired at 2026-01-01T18:00:00Z, 6 hours ago"],
  ["expires this moment", certificate(NOW - HOUR, NOW), ["cert_renewal_overdue"]],
  [
    "a clock that is ahead is not expiry",
    { ...certificate(NOW - 3 * HOUR, NOW - HOUR), clockSkewSeconds: -2 * 3600 },
    ["clock_skew"],
    "this host's clock is 2 hours ahead of the server's",
  ],
  [
    "a clock that is behind does not hide expiry",
    { ...certificate(NOW - HOUR, NOW + HOUR), clockSkewSeconds: 2 * 3600 },
    ["clock_skew", "cert_expired"],
    "this host's clock is 2 hours behind the server's",
  ],
  ["an answer takes its time", { roundTripMs: 499 }, []],
  ["a slow way", { roundTripMs: 1240 }, ["link_slow"], "the last heartbeats took 1.2 s or longer to be answered"],
  ["a minute is tolerated", { clockSkewSeconds: 60 }, []],
  ["more is not", { clockSkewSeconds: -61 }, ["clock_skew"]],
  [
    "never connected, and the certificate is of the future",
    { ...certificate(NOW + HOUR, NOW + 24 * HOUR), clockSkewSeconds: undefined },
    ["clock_skew"],
    "the certificate is valid only from 2026-01-02T01:00:00Z, and this host's clock says 2026-01-02T00:00:00Z",
  ],
  ["renewal a little late", certificate(NOW - 17 * HOUR, NOW + 7 * HOUR), []],
  [
    "renewal overdue",
    certificate(NOW - 19 * HOUR, NOW + 5 * HOUR),
    ["cert_renewal_overdue"],
    "it expires at 2026-01-02T05:00:00Z, 5 hours from now",
  ],
  [
    "renewal overdue by the server's clock",
    { ...certificate(NOW - 18 * HOUR, NOW + 6 * HOUR), clockSkewSeconds: 30 },
    ["cert_renewal_overdue"],
  ],
  [
    "of another node",
    certificate(NOW - HOUR, NOW + HOUR, "other"),
    ["identity_key_missing"],
    `enrolled as ${NODE}`,
  ],
  ["no key", { identity: problem("identity_key_missing") }, ["identity_key_missing"], "so"],
  ["other trust", { trust: problem("trust_bundle_invalid") }, ["trust_bundle_invalid"], "so"],
  ["no agent.json", { agent: problem("identity_key_missing") }, ["identity_key_missing"]],
  [
    "another address than the profile's",
    { apiUrl: "https://old.example.com:18442" },
    ["endpoint_profile_drift"],
    "in use is https://old.example.com:18442; the profile default, version 3, says https://api.example.com:18442",
  ],
  ["a path makes no difference", { apiUrl: "https://api.example.com:18442/x" }, []],
  [
    "a profile without that address",
    { agent: { found: { node_id: NODE, profile: { ...profile, endpoints: {} } } } },
    [],
  ],
  ["no address in use", { apiUrl: undefined }, []],
  ["89.9 % used", { rootUsedPercent: 89.9 }, []],
  ["90 % used", { rootUsedPercent: 90 }, ["node_observability_disk_pressure"], "90 % of the root"],
  ["another limit", { rootUsedPercent: 75, diskPressurePercent: 70 }, ["node_observability_disk_pressure"]],
  ["nobody knows how much is used", { rootUsedPercent: undefined }, []],
  ["full", { stateDir: "full" }, ["disk_full"]],
  [
    "full, and no key",
    { stateDir: "full", identity: problem("identity_key_missing") },
    ["disk_full", "identity_key_missing"],
  ],
  ["read-only", { stateDir: "read_only" }, ["state_dir_read_only"]],
  [
    "no directory at all is said once",
    {
      stateDir: "missing",
      agent: problem("identity_key_missing"),
      identity: problem("identity_key_missing"),
      trust: problem("trust_bundle_invalid"),
    },
    ["identity_key_missing"],
  ],
];

describe("self-checks", () => {
  it.for(rows)("AGENT-05 %s", ([, facts, reasons, detail]) => {
    const found = findings({ ...well, ...facts });
    expect(found.map(({ reason }) => reason)).toEqual(reasons);
    if (detail) expect(found[0]?.detail).toContain(detail);
  });

  it("AGENT-05 finds something for every combination of facts, from the catalogue, with a detail", () => {
    const some = fc.array(fc.constantFrom(...rows.map(([, facts]) => facts)), { maxLength: 5 });
    fc.assert(
      fc.property(some, (changes) => {
        const found = findings(Object.assign({}, well, ...changes));
        for (const { reason, detail } of found) {
          expect(diagnosticReasons).toHaveProperty(reason);
          expect(detail.length).toBeGreaterThan(1);
          expect(detail.length).toBeLessThan(400);
        }
      }),
    );
  });

  it.for([
    [1_000, "1 seconds"],
    [119_999, "119 seconds"],
    [120_000, "2 minutes"],
    [-7_200_000, "2 hours"],
    [47 * HOUR, "47 hours"],
    [72 * HOUR, "3 days"],
  ] as const)("AGENT-05 tells %d ms as %s", ([ms, text]) => {
    expect(span(ms)).toBe(text);
  });
});
