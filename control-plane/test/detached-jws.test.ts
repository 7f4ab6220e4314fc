// Detached signatures, beside another library's: here and not in kit, which brings no such library.

import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { signDetached, verifyDetached } from "@holdfast/kit/detached-jws";
import fc from "fast-check";
import { FlattenedSign, flattenedVerify } from "jose";
import { describe, expect, it } from "vitest";
import { anyCharacter } from "../../testkit/schemas/any-character.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const other = generateKeyPairSync("ed25519");
const key = { kid: "k1", privateKey };
const keys = new Map([["k1", publicKey]]);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const payload = '{"a":1}';
const valid = signDetached(key, payload);
const [validHeader = "", , validSignature = ""] = valid.split(".");

describe("detached JWS", () => {
  it("TASK-03 verifies what it signed, whatever the payload, and no other payload", () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), fc.string({ unit: anyCharacter }), (text, another) => {
        fc.pre(text.isWellFormed() && another.isWellFormed());
        const jws = signDetached(key, text);
        expect(verifyDetached(keys, text, jws)).toBe("valid");
        expect(verifyDetached(keys, another, jws)).toBe(text === another ? "valid" : "invalid");
      }),
    );
  });

  it("TASK-03 agrees with another library, both ways", async () => {
    const encoded = Buffer.from(payload).toString("base64url");
    const { protectedHeader } = await flattenedVerify(
      { protected: validHeader, payload: encoded, signature: validSignature },
      publicKey,
    );
    expect(protectedHeader).toEqual({ alg: "EdDSA", kid: "k1" });
    const theirs = await new FlattenedSign(Buffer.from(payload))
      .setProtectedHeader({ alg: "EdDSA", kid: "k1" })
      .sign(privateKey);
    expect(verifyDetached(keys, payload, `${theirs.protected}..${theirs.signature}`)).toBe("valid");
  });

  it("TASK-03 signs and verifies with P-256 as another library does, and lets no key take the other's algorithm", async () => {
    const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const root = { kid: "root", privateKey: ec.privateKey };
    const both = new Map([...keys, ["root", ec.publicKey]]);
    const jws = signDetached(root, payload);
    expect(verifyDetached(both, payload, jws)).toBe("valid");
    expect(verifyDetached(both, `${payload} `, jws)).toBe("invalid");
    const [header = "", , signature = ""] = jws.split(".");
    const encoded = Buffer.from(payload).toString("base64url");
    const { protectedHeader } = await flattenedVerify(
      { protected: header, payload: encoded, signature },
      ec.publicKey,
    );
    expect(protectedHeader).toEqual({ alg: "ES256", kid: "root" });
    for (const [alg, kid] of [
      ["EdDSA", "root"],
      ["ES256", "k1"],
    ]) {
      expect(verifyDetached(both, payload, `${encode({ alg, kid })}..${signature}`)).toBe("invalid");
    }
  });

  it("TASK-03 says when the key is not known, and refuses the signature of another key under a known name", () => {
    expect(verifyDetached(new Map(), payload, valid)).toBe("unknown_key");
    const forged = signDetached({ kid: "k1", privateKey: other.privateKey }, payload);
    expect(verifyDetached(keys, payload, forged)).toBe("invalid");
  });

  const secret = createPublicKey(privateKey).export({ type: "spki", format: "pem" });
  it.each<[string, string]>([
    ["no algorithm", `${encode({ alg: "none", kid: "k1" })}..`],
    ["an algorithm of shared secrets", `${encode({ alg: "HS256", kid: "k1" })}..${encode(secret)}`],
    ["another algorithm over a valid signature", `${encode({ alg: "ES256", kid: "k1" })}..${validSignature}`],
    ["no kid", `${encode({ alg: "EdDSA" })}..${validSignature}`],
    ["a kid that is no text", `${encode({ alg: "EdDSA", kid: ["k1"] })}..${validSignature}`],
    ["a key of its own", `${encode({ alg: "EdDSA", kid: "k1", jwk: {} })}..${validSignature}`],
    [
      "an extension to understand",
      `${encode({ alg: "EdDSA", kid: "k1", crit: ["b64"], b64: false })}..${validSignature}`,
    ],
    ["an attached payload", `${validHeader}.${Buffer.from(payload).toString("base64url")}.${validSignature}`],
    ["a fourth part", `${valid}.`],
    ["no signature", `${validHeader}..`],
    ["half a signature", `${validHeader}..${validSignature.slice(0, 40)}`],
    ["a header that is no JSON", `e30x..${validSignature}`],
    ["a header that is null", `${encode(null)}..${validSignature}`],
    ["nothing", ""],
  ])("TASK-03 refuses %s", (_what, jws) => {
    expect(verifyDetached(keys, payload, jws)).toBe("invalid");
  });

  it("TASK-03 refuses a signature with any character changed, and never throws", () => {
    fc.assert(
      fc.property(fc.nat(valid.length - 1), fc.constantFrom("A", "_", ".", "=", " "), (at, letter) => {
        const changed = valid.slice(0, at) + letter + valid.slice(at + 1);
        fc.pre(decoded(changed) !== decoded(valid));
        expect(["invalid", "unknown_key"]).toContain(verifyDetached(keys, payload, changed));
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(verifyDetached(keys, payload, text)).toBe("invalid");
      }),
    );
  });
});

/** The last letter of base64url may differ without a meaning. */
function decoded(jws: string): string {
  return jws
    .split(".")
    .map((part) => Buffer.from(part, "base64url").toString("hex"))
    .join(".");
}
