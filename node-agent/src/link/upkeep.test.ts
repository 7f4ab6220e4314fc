import { afterEach, describe, expect, it, vi } from "vitest";
import { HostProblem } from "../identity/state-directory.ts";
import type { Way } from "../identity/trials.ts";
import { emptyState, memoryStore } from "../recovery/state.ts";
import { createUpkeep } from "./upkeep.ts";

const profile = { name: "lab", version: 1, endpoints: {}, resolve: {}, ca_sha256: [] };
const certificate = { serial: "0a", notBefore: Date.now() - 7_200_000, notAfter: Date.now() - 3_600_000 };
const expired = { reason: "cert_expired", detail: "", retryAfterMs: undefined } as const;
const token = {
  ...{ token: "hfr_x", seq: 1, profile: "lab", issued_at: new Date(0).toISOString() },
  expires_at: new Date(Date.now() + 3_600_000).toISOString(),
};

/** A node whose certificate has expired, with a token, that can also be reached where it joined. */
function upkeepOf(request: () => Promise<void>) {
  const store = memoryStore("n");
  store.write({ ...emptyState("n"), token });
  const path = vi.fn(() => {
    throw new HostProblem("trust_bundle_invalid", "there is none");
  });
  const way: Way = {
    ...{ identity: { nodeId: "n", keyPem: "", chainPem: "", certificate }, roots: [] },
    ...{ profile, apiUrl: "https://present" },
  };
  const record = vi.fn();
  const upkeep = createUpkeep({
    keeper: {
      ...{
        nodeId: "n",
        present: () => way,
        candidates: () => ({}),
        offer() {},
        agent: () => ({ profile }) as never,
      },
      adopt: (change) => void Object.assign(way, change),
      ...{ recover() {}, storeRecovered: () => true },
    },
    recovery: { store, path, instanceId: "i", bootId: "b" },
    addresses: () => ({ joinedAt: "https://joined", fixedUrl: undefined }),
    ...{ connected: () => false, skewSeconds: () => 0, request, renew: () => Promise.reject(new Error("no")) },
    ...{ onAdopted() {}, onRecovered() {}, count() {}, record, onTrustRefused() {} },
  });
  return { upkeep, path, record };
}

afterEach(() => void vi.restoreAllMocks());

describe("upkeep of an identity that is rejected", () => {
  it("ID-05 recovers only after everything else was tried, and not when something of it has worked", async () => {
    // Without the delay before the first attempt.
    vi.spyOn(Math, "random").mockReturnValue(0);
    const { promise, resolve } = Promise.withResolvers<void>();
    const trying = upkeepOf(() => promise);
    trying.upkeep.afterFailure(expired, "0a");
    await new Promise((turn) => setImmediate(turn));
    expect(trying.path, "while the other address is tried").not.toHaveBeenCalled();
    resolve();
    await trying.upkeep.settled();
    expect(trying.path, "it has worked").not.toHaveBeenCalled();

    const failing = upkeepOf(() => Promise.reject(new Error("not there either")));
    failing.upkeep.afterFailure(expired, "0a");
    await failing.upkeep.settled();
    expect(failing.path).toHaveBeenCalledTimes(1);
    expect(failing.record).toHaveBeenLastCalledWith("trust_bundle_invalid", "there is none", undefined);
    failing.upkeep.stop();
  });

  it("AGENT-02 neither tries nor recovers anything while it is asked to slow down", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const request = vi.fn(() => Promise.resolve());
    const { upkeep, path } = upkeepOf(request);
    upkeep.afterFailure({ ...expired, reason: "edge_rate_limited" }, "0a");
    await upkeep.settled();
    expect(request).not.toHaveBeenCalled();
    expect(path).not.toHaveBeenCalled();
  });
});
