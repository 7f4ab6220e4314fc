import { describe, expect, it } from "vitest";
import { tokenState } from "./token-state.ts";

const now = Date.parse("2026-03-01T03:00:00.000Z");

describe("the state of an API token", () => {
  it("SEC-03 is active until it is revoked or its time has come", () => {
    expect(tokenState({ revoked_at: null, expires_at: null }, now)).toMatchObject({
      word: "Active",
      usable: true,
    });
    expect(tokenState({ revoked_at: null, expires_at: "2026-03-01T03:00:00.001Z" }, now).word).toBe("Active");
    expect(tokenState({ revoked_at: null, expires_at: "2026-03-01T03:00:00.000Z" }, now).word).toBe("Expired");
  });

  it("SEC-03 says revoked even where it would have expired too", () => {
    const both = { revoked_at: "2026-02-01T00:00:00.000Z", expires_at: "2026-02-02T00:00:00.000Z" };
    expect(tokenState(both, now)).toMatchObject({ word: "Revoked", usable: false });
  });
});
