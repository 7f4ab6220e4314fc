import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactionOf } from "./redaction.ts";

const redact = redactionOf(["own secret of this process"]);

describe("the last redaction before a bundle", () => {
  it.for([
    "password",
    "client_secret",
    "api-key",
    "private_key",
    "agent_token",
    "tokens",
    "set-cookie",
    "Authorization",
    "kek",
  ])("AGENT-10 hides the field %s at any depth, whatever it holds", (name) => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (rest) => {
        const value = `CANARY${rest}CANARY`;
        const text = JSON.stringify(redact({ a: [{ [name]: value }, { b: { [name]: [value] } }] }));
        expect(text).not.toContain("CANARY");
      }),
      { numRuns: 30 },
    );
  });

  it("AGENT-10 hides what has a form: keys of 32 bytes, assignments, headers, and the process's own", () => {
    const key = randomBytes(32).toString("base64");
    for (const text of [
      `it is ${key}.`,
      "run --password=CANARY-1 now",
      "DB_PASSWORD='CANARY-1'",
      "token: CANARY-CANARY-1",
      "Set-Cookie: a=CANARY; Path=/",
      "it is the own secret of this process!",
    ]) {
      const shown = redact(text);
      expect(shown).toContain("[redacted]");
      for (const secret of [key, "CANARY", "own secret"]) expect(shown).not.toContain(secret);
    }
  });

  it("AGENT-10 leaves what evidence needs: keys of observations, digests, times, and whether a setting is set", () => {
    const value = {
      ...{ key: "terminal", kind: "recovery_token", value: "current", title: "Recovery token: current" },
      ...{ sha256: "ab".repeat(32), at: "2030-01-01T00:00:00.000Z", token_count: 3, token: null, expires: 7 },
      ...{ HOLDFAST_SERVICE_TOKEN: "[set]", HOLDFAST_INGRESS_TOKEN: null },
    };
    expect(redact(value)).toEqual(value);
  });
});
