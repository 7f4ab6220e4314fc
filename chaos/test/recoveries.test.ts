// From a fault to a green checklist, as `npm run chaos -- recoveries` runs it; and that a trace which tells it in another
// order is noticed.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { recoveryChecks } from "@holdfast/contracts/endpoints/drift";
import type { TraceEntry, TraceKind } from "@holdfast/contracts/endpoints/trace";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { requestProblem } from "../src/recoveries/pace.ts";
import type { RecoveryResult } from "../src/recoveries/recovery.ts";
import { orderProblem } from "../src/recoveries/story.ts";
import { printSecondTries } from "./print-second-tries.ts";

const program = fileURLToPath(new URL("../src/run.ts", import.meta.url));

function recoveries(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, "recoveries", ...args], { maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

/** With what the fault is classified as first. */
const expected: [name: string, reason: string][] = [
  ["outage-beyond-expiry", "cert_expired"],
  ["trust-stale", "server_tls_untrusted"],
  ["trust-all-stale", "recovery_enrollment_blocked"],
  ["token-missing", "node_agent_auth_failed"],
  ["bundle-late", "recovery_token_missing"],
  ["signing-ca-lost", "cert_untrusted_by_ingress"],
  ["ingress-ca-swapped", "cert_untrusted_by_ingress"],
  ["endpoint-drift", "endpoint_profile_drift"],
  ["public-edge", "endpoint_profile_drift"],
  ["rate-limited", "edge_rate_limited"],
  ["revoked", "identity_revoked_or_fenced"],
  ["quarantined", "identity_revoked_or_fenced"],
  ["clone-cold", "cloned_identity_detected"],
  ["clone-warm", "cloned_identity_detected"],
  ["clone-before-renewal", "cloned_identity_detected"],
  ["clock-ahead", "clock_skew"],
  ["clock-behind", "clock_skew"],
  ["disk-full", "agent_down"],
  ["key-deleted", "agent_down"],
];
const names = expected.map(([name]) => name).toSorted();

const unable =
  lacks("root") ||
  lacks("nft") ||
  lacks("dnsmasq") ||
  lacks("faketime") ||
  lacks("openssl") ||
  lacks("nginx") ||
  lacks("postgresql");

describe.skipIf(unable)("a node that lost its identity, its trust or its way", () => {
  let results: RecoveryResult[] = [];
  beforeAll(async () => {
    const { stdout, stderr } = await recoveries("--json");
    expect(stderr).toBe("");
    ({ recoveries: results } = JSON.parse(stdout) as { recoveries: RecoveryResult[] });
    printSecondTries(results);
  }, 900_000);

  it.for(expected)("DRIFT-06 DRIFT-09 is healthy again, under one incident: %s", ([name, reason]) => {
    const result = results.find((one) => one.name === name);
    expect(result?.problems).toEqual([]);
    expect(result).toMatchObject({ ok: true, incident_id: expect.any(String), seconds: expect.any(Number) });
    expect(result?.reasons[0]).toBe(reason);
  });

  it("has no other recovery", () => {
    expect(results.map(({ name }) => name).toSorted()).toEqual(names);
  });
});

describe("npm run chaos -- recoveries", () => {
  it("lists what there is, and answers a wrong name with it", async () => {
    const { stdout } = await recoveries("list");
    const listed = stdout.split("\n").flatMap((line) => line.split(" ")[0] || []);
    expect(listed.toSorted()).toEqual(names);
    const wrong = await recoveries("nothing");
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain("There is no recovery nothing; there are: ");
  });

  const entry = (kind: TraceKind, code: string | null, title = ""): TraceEntry => ({
    ...{ at: "2030-01-01T00:00:00Z", kind, code, title, detail: null, by: null },
    ...{ node_id: null, ref: null, correlation_id: null },
  });
  const refused = entry("refusal", "cert_expired");
  const classified = entry("classification", "cert_expired");
  const recovered = entry("action", null, "node.recover gpu-1");
  const proofs = recoveryChecks.map((check) => entry("proof", check));
  const end = entry("classification", "cert_expired", "Healthy again: recovery verified, incident closed");
  const wanted = { reasons: ["cert_expired"], actions: ["node.recover"] };

  it("DRIFT-09 accepts a trace of refusal, classification, action and proof in this order, and no other", () => {
    expect(orderProblem([refused, classified, recovered, ...proofs, end], wanted)).toBeUndefined();
    for (const wrong of [
      [classified, recovered, ...proofs, end],
      [classified, refused, recovered, ...proofs, end].slice(0, -1),
      [refused, recovered, classified, ...proofs, end],
      [refused, classified, ...proofs, recovered, end],
      [refused, classified, recovered, ...proofs.slice(1), end],
      [refused, classified, recovered, ...proofs],
    ]) {
      expect(orderProblem(wrong, wanted)).toEqual(expect.any(String));
    }
  });

  it("DRIFT-09 accepts the end of a cause without proof only where none is needed", () => {
    const gone = entry("classification", "edge_rate_limited", "No cause left: incident closed");
    const limited = [refused, entry("classification", "edge_rate_limited"), gone];
    const unproved = { reasons: ["edge_rate_limited"], actions: [], isProved: false };
    expect(orderProblem(limited, unproved)).toBeUndefined();
    expect(orderProblem(limited, { ...unproved, isProved: true })).toEqual(expect.any(String));
    expect(orderProblem(limited.slice(0, -1), unproved)).toEqual(expect.any(String));
    expect(orderProblem(limited.toReversed(), unproved)).toEqual(expect.any(String));
  });

  const requests = (heartbeats: number, streams: number, ...others: string[]) => [
    ...Array<string>(heartbeats).fill("/internal/v1/nodes/n/heartbeat"),
    ...Array<string>(streams).fill("/internal/v1/nodes/n/stream"),
    ...others,
  ];

  it.for<[string, string[], boolean]>([
    ["the fewest", requests(9, 0), true],
    // At 0, 5, 15, 35 and then every 30 seconds; streams at 0, 30, 90, 210 and 450.
    ["the most", requests(22, 5), true],
    ["too few", requests(8, 0), false],
    ["none", [], false],
    ["too many", requests(23, 0), false],
    ["too many streams", requests(15, 6), false],
    ["a recovery", requests(15, 2, "/v1/recover"), false],
    ["a poll", requests(15, 2, "/internal/v1/nodes/n/tasks/wait"), false],
  ])("AGENT-02 judges the requests of ten minutes: %s", ([, paths, isRight]) => {
    expect(requestProblem(paths, 600) === undefined).toBe(isRight);
  });
});
