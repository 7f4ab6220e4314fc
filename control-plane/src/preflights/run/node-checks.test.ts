// What a check makes of several problems that a host reports at once.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { HostPreflight } from "@holdfast/contracts/preflight/host-report";
import { describe, expect, it } from "vitest";
import type { Found, Means } from "./means.ts";
import { nodeRecoveryStatus, runtimeApi } from "./node-checks.ts";

type Endpoint = HostPreflight["endpoints"][number];
const way = (code: Endpoint["code"]): Endpoint => ({
  ...{
    name: "node_api",
    url: "https://nodes.test",
    ok: code === null,
    code,
    server_code: null,
    detail: "",
    ms: 1,
  },
});

/** On a node that does not report, whose host has these problems and this way to the API. */
async function check(reasons: readonly string[], code: Endpoint["code"]) {
  const problems = reasons.map((reason) => ({ reason, detail: `found ${reason}` }));
  const report = { problems, endpoints: [way(code)], disk: null, agent_running: true } as unknown as HostPreflight;
  const means = { expected: {}, askHost: async () => report } as unknown as Means;
  const found: Found = { node: { connection: "offline", attention: [] } as unknown as NodeDetail };
  const outcomes = [];
  for (const one of [nodeRecoveryStatus, runtimeApi]) {
    outcomes.push((await one(means, found, AbortSignal.timeout(1_000))).outcome);
  }
  return outcomes;
}

const passed = { status: "passed" };
const failed = (code: string) => ({ status: "failed", code });

describe("problems of a host", () => {
  it("PRE-02 a refused recovery is no cause while the host does not trust the server", async () => {
    expect(await check(["trust_bundle_invalid", "recovery_refused"], "trust_bundle_missing")).toEqual([
      passed,
      failed("trust_bundle_invalid"),
    ]);
    expect(await check(["recovery_refused", "server_tls_untrusted"], "tls_untrusted")).toEqual([
      passed,
      failed("server_tls_untrusted"),
    ]);
  });

  it("PRE-02 a refused recovery is a cause by itself, and where the way to the server is open", async () => {
    expect(await check(["recovery_refused"], "mtls_refused")).toEqual([
      failed("recovery_refused"),
      failed("auth_failed"),
    ]);
    expect((await check(["trust_bundle_invalid", "recovery_refused"], null))[0]).toEqual(
      failed("recovery_refused"),
    );
  });

  it("PRE-02 what explains nothing hides nothing", async () => {
    const [status] = await check(["link_slow", "auth_failed"], "tcp_refused");
    expect(status).toEqual(failed("auth_failed"));
  });
});
