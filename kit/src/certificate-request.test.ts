import { execFileSync } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { describe, expect, it } from "vitest";
import { x509 } from "../../testkit/identity/x509.ts";
import { certificateRequest, newPrivateKey, privateKeyPem } from "./certificate-request.ts";

const names = ["node-1", "x", "ünïcode ✓", "n".repeat(64), "long".repeat(60)];

describe("certificate request", () => {
  it.for(names)("ID-02 is a PKCS#10 request that OpenSSL verifies: %s", (name) => {
    const pem = certificateRequest(newPrivateKey(), name);
    const printed = execFileSync("openssl", ["req", "-verify", "-noout", "-text", "-nameopt", "utf8"], {
      input: pem,
      stdio: ["pipe", "pipe", "pipe"],
    }).toString();
    expect(printed).toMatch(new RegExp(`CN ?= ?${name}\n`));
    expect(printed).toContain("NIST CURVE: P-256");
    expect(printed).toContain("ecdsa-with-SHA256");
  });

  it.for(names)("ID-02 is read by the server's library, with the key that it was made for: %s", async (name) => {
    const key = newPrivateKey();
    const request = new x509.Pkcs10CertificateRequest(certificateRequest(key, name));
    expect(await request.verify()).toBe(true);
    expect(request.subjectName.getField("CN")).toEqual([name]);
    const spki = createPublicKey(key).export({ type: "spki", format: "der" });
    expect(Buffer.from(request.publicKey.rawData).equals(spki)).toBe(true);
  });

  it("ID-02 holds nothing of the private key", () => {
    const key = newPrivateKey();
    const secret = key.export({ format: "jwk" }).d ?? "";
    const request = Buffer.from(certificateRequest(key, "node").replace(/-----.*-----/g, ""), "base64");
    expect(request.includes(Buffer.from(secret, "base64url"))).toBe(false);
    expect(privateKeyPem(key)).toContain("BEGIN PRIVATE KEY");
  });
});
