import { describe, expect, it } from "vitest";
import type { CanaryResult } from "../endpoints/platform.ts";
import { summarizeCanaries } from "./canaries.ts";

const canary = (over: Partial<CanaryResult>): CanaryResult => ({
  ...{ endpoint: "node_api", url: "https://nodes.test:18442", address: "10.0.0.5", ingress: null },
  ...{ state: "accepted", why: null, checked_at: "2026-03-01T03:00:00.000Z" },
  ...over,
});
const missed = canary({ state: "unreachable", why: "no answer", address: "10.0.0.6" });

describe("canary certificates in a line", () => {
  it("ID-11 that are accepted are healthy", () => {
    const text = "Certificates of the CA are accepted at https://nodes.test:18442";
    expect(summarizeCanaries([canary({})])).toEqual({ state: "ok", text });
    // Of two addresses of one name, one is enough.
    expect(summarizeCanaries([canary({}), missed])).toEqual({ state: "ok", text });
  });

  it("ID-11 that are rejected anywhere are a fault, with the address", () => {
    const rejected = canary({ state: "rejected", why: "it answered HTTP 400", url: "https://b.test" });
    expect(summarizeCanaries([canary({}), rejected])).toEqual({
      state: "failed",
      text: "https://b.test (10.0.0.5) rejects certificates of the CA, so none are issued: it answered HTTP 400",
    });
  });

  it("ID-11 that did not arrive are a warning", () => {
    expect(summarizeCanaries([missed])).toEqual({
      ...{
        state: "degraded",
        text: "No canary certificate arrived at https://nodes.test:18442 (10.0.0.6): no answer",
      },
    });
    expect(summarizeCanaries([])).toEqual({ state: "degraded", text: "Not checked yet" });
  });
});
