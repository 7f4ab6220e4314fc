import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { secretPrefix } from "../../contracts/src/secrets.ts";
import { anyCharacter } from "../../testkit/schemas/any-character.ts";
import { redact } from "./redact.ts";

const base64url = fc.constantFrom(..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
const tails = fc.string({ unit: base64url, minLength: 43, maxLength: 43 });
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: anyCharacter }),
  fc.constantFrom("\n", "x", "_", "token=", '"'),
);

describe("redact", () => {
  it.for(Object.entries(secretPrefix))("SEC-03 takes a secret of the kind %s out of any text", ([, prefix]) => {
    fc.assert(
      fc.property(anyText, tails, anyText, (before, tail, after) => {
        const secret = prefix + tail;
        for (const text of [
          `${before}${secret}${after}`,
          JSON.stringify({ text: `${before}${secret}${after}` }),
        ]) {
          const shown = redact(text);
          expect(shown).not.toContain(tail);
          expect(shown).not.toContain(tail.slice(0, 16));
        }
      }),
    );
  });

  it("SEC-03 says which kind of secret stood there", () => {
    expect(redact(`a hft_${"x".repeat(43)} b`)).toBe("a hft_[redacted] b");
  });

  it("SEC-03 takes a recovery bundle out that was pasted as one line", () => {
    const line = `hfbundle1.${"h".repeat(43)}.${"s".repeat(2000)}`;
    expect(redact(`apply --line ${line}, and`)).toBe("apply --line hfbundle[redacted], and");
  });

  it("SEC-03 takes an enrollment token out with both its halves", () => {
    const token = `hfe_${"s".repeat(43)}.${"h".repeat(43)}`;
    expect(redact(`join --token ${token} --api https://h`)).toBe("join --token hfe_[redacted] --api https://h");
    expect(redact(`the token hfe_${"s".repeat(43)}. Then join.`)).toBe("the token hfe_[redacted]. Then join.");
  });

  it.for(["pkcs8", "sec1", "encrypted"] as const)("AGENT-10 takes a private key in PEM out: %s", (form) => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const encrypted = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" } as const;
    const pem = String(privateKey.export(form === "encrypted" ? encrypted : { type: form, format: "pem" }));
    const body = pem.split("\n").slice(1, -2);
    expect(body.length).toBeGreaterThan(1);
    const chain = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    const once = JSON.stringify({ identity: `${pem}${chain}`, beside: "seen" });
    for (const text of [`read ${pem}${chain} seen`, once, JSON.stringify({ line: once })]) {
      const shown = redact(text);
      for (const line of body) expect(shown).not.toContain(line.slice(0, 16));
      expect(shown).toContain("BEGIN CERTIFICATE");
      expect(shown).toContain("seen");
    }
    expect(JSON.parse(redact(once))).toMatchObject({ beside: "seen" });
    for (const cut of [pem.slice(0, 90), JSON.stringify(pem).slice(1, 110)]) {
      expect(redact(`${cut}"`)).toBe('[redacted private key]"');
    }
  });

  it.for(["x", "hfs_", "a://b:", "Bearer ", "-----BEGIN PRIVATE KEY-----!", "\\n"])(
    "SEC-03 comes to an end on megabytes of %j",
    (unit) => {
      const text = unit.repeat(Math.ceil(2_000_000 / unit.length));
      expect(redact(`${text} after`)).toMatch(/ after$/);
    },
  );

  it("SEC-03 takes the password out of a connection URL and leaves the rest readable", () => {
    const shown = redact("connect to postgres://holdfast:geh:eim@db.example.com:5432/holdfast failed");
    expect(shown).toBe("connect to postgres://holdfast:[redacted]@db.example.com:5432/holdfast failed");
    expect(redact("redis://:geheim@cache:6379/0")).toBe("redis://:[redacted]@cache:6379/0");
  });

  it("SEC-03 takes any password out of any connection URL, also an @ that was not encoded", () => {
    const letters = fc.constantFrom(..."abcXYZ019-._~!$&'()*+,;=:@%#?");
    const password = fc.string({ unit: letters, minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(fc.constantFrom("postgres", "https", "redis"), password, (scheme, secret) => {
        const shown = redact(`error: ${scheme}://user:CANARY${secret}CANARY@host:5432/name refused`);
        expect(shown).not.toContain("CANARY");
        expect(shown).toContain("@host:5432/name refused");
      }),
    );
  });

  it("SEC-03 ends with the URL: what follows in a JSON line stays", () => {
    const line = JSON.stringify({ cache: "redis://cache:6379", mail: "a@example.com", db: "postgres://u:p@db/x" });
    expect(JSON.parse(redact(line))).toEqual({
      cache: "redis://cache:6379",
      mail: "a@example.com",
      db: "postgres://u:[redacted]@db/x",
    });
  });

  it.for(["Bearer", "bearer", "Basic"])("SEC-03 takes %s credentials out", (scheme) => {
    const shown = redact(`sent authorization: ${scheme} dXNlcjpwYXNz/+=._~- to the edge`);
    expect(shown).toBe(`sent authorization: ${scheme} [redacted] to the edge`);
    expect(redact(JSON.stringify(`headers:\n${scheme} dXNlcjpwYXNzd29yZA==`))).not.toContain("dXNlcjpwYXNzd29yZA");
  });

  it("SEC-03 leaves text without secrets as it is", () => {
    const harmless = "GET /v1/me 200, see https://holdfast.example.com:8443/a@b and hft_ prefixes";
    expect(redact(harmless)).toBe(harmless);
  });
});
