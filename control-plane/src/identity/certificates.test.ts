// Certificates beside those that an X.509 library makes of the same content: the signed bytes are equal.

import { createPublicKey, type KeyObject, type webcrypto, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { newPrivateKey } from "@holdfast/kit/certificate-request";
import { tag } from "@holdfast/kit/der";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { x509 } from "../../../testkit/identity/x509.ts";
import type { Validity } from "./certificate-der.ts";
import {
  type KeyPair,
  type Made,
  makeIngressCertificate,
  makeIssuing,
  makeKeyPair,
  makeNodeCertificate,
  makeRoot,
  makeServerCertificate,
  makeServiceCertificate,
  type Signer,
  signerOf,
  validityFrom,
} from "./certificates.ts";
import { read } from "./der-reader.ts";

const CLIENT = "1.3.6.1.5.5.7.3.2";
const SERVER = "1.3.6.1.5.5.7.3.1";
const SIGNED = { name: "ECDSA", hash: "SHA-256" };
const P256 = { name: "ECDSA", namedCurve: "P-256" };

const keys = Array.from({ length: 8 }, () => makeKeyPair());
const root = signerOf(makeRoot(keys[0] as KeyPair, new Date()).der, (keys[0] as KeyPair).privateKey);
const issuing = signerOf(makeIssuing(root, keys[1] as KeyPair, new Date()).der, (keys[1] as KeyPair).privateKey);

/** The part of a certificate that is signed. */
function signedPart(der: Uint8Array): string {
  const [whole] = read(Buffer.from(der), tag.sequence);
  const [toBeSigned] = read(whole.content, tag.sequence, tag.sequence, tag.bitString);
  return toBeSigned.bytes.toString("hex");
}

const webKey = (key: KeyObject) => key.toCryptoKey(P256, true, ["sign"]) as webcrypto.CryptoKey;

type Same = {
  subject: string;
  names: x509.JsonGeneralName[];
  usages: string[];
  publicKey: Buffer;
  validity: Validity;
};

/** The certificate that the library makes of the same content, with the serial number of ours. */
async function byLibrary(signer: Signer, made: Made, { subject, names, usages, publicKey, validity }: Same) {
  const issuer = new x509.X509Certificate(signer.certificate.raw);
  const key = new x509.PublicKey(publicKey);
  return x509.X509CertificateGenerator.create({
    ...{
      serialNumber: made.serial,
      subject: `CN=${subject}`,
      issuer: issuer.subject,
      publicKey: key,
      ...validity,
    },
    signingKey: webKey(signer.privateKey),
    signingAlgorithm: SIGNED,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages),
      new x509.SubjectAlternativeNameExtension(names),
      await x509.SubjectKeyIdentifierExtension.create(key),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
}

async function expectSame(signer: Signer, made: Made, content: Same): Promise<void> {
  const theirs = await byLibrary(signer, made, content);
  expect(signedPart(made.der)).toBe(signedPart(new Uint8Array(theirs.rawData)));
  const leaf = new X509Certificate(made.der);
  expect(leaf.checkIssued(signer.certificate) && leaf.verify(signer.certificate.publicKey)).toBe(true);
  const parsed = new x509.X509Certificate(made.der);
  const issuer = new x509.X509Certificate(signer.certificate.raw);
  expect(await parsed.verify({ publicKey: issuer, signatureOnly: true })).toBe(true);
  expect(leaf.serialNumber.toLowerCase()).toBe(made.serial);
  expect([leaf.validFromDate, leaf.validToDate]).toEqual([content.validity.notBefore, content.validity.notAfter]);
  expect(leaf.publicKey.export({ type: "spki", format: "der" })).toEqual(content.publicKey);
  expect(leaf.ca).toBe(false);
}

const ids = fc.uuid({ version: 7 });
const publicKeys = fc.constantFrom(...keys).map(({ publicKey }) => publicKey);
/** Until long after 2050, when dates begin to be written differently. */
const seconds = fc.integer({ min: Date.UTC(2020) / 1000, max: Date.UTC(2099) / 1000 });
const validities = fc.tuple(seconds, fc.integer({ min: 1, max: 10 * 365 * 86_400 })).map(([from, lasts]) => ({
  notBefore: new Date(from * 1000),
  notAfter: new Date((from + lasts) * 1000),
}));
/** The library writes an IPv4 address inside an IPv6 one wrongly; that has a test of its own. */
const addresses = fc.oneof(
  fc.ipV4(),
  fc.ipV6().filter((address) => !address.includes(".")),
);
const hosts = fc.array(fc.oneof(fc.domain(), fc.constantFrom("localhost", "nodes"), addresses), { maxLength: 6 });
/** As `markOfIngressToken` makes them. */
const marks = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString("base64url"));
const shortNames = fc.stringMatching(/^[a-z0-9-]{1,63}$/);
const generalName = (name: string): x509.JsonGeneralName => ({ type: isIP(name) ? "ip" : "dns", value: name });
const uri = (value: string): x509.JsonGeneralName => ({ type: "url", value });
const RUNS = { numRuns: 60 };

describe("a certificate", () => {
  it("ID-02 of a node is what a library makes of the same content", async () => {
    const run = fc.asyncProperty(ids, publicKeys, validities, async (id, publicKey, validity) => {
      const made = makeNodeCertificate(issuing, { id, publicKey, validity });
      const names = [uri(`holdfast://node/${id}`)];
      await expectSame(issuing, made, { subject: id, names, usages: [CLIENT], publicKey, validity });
      const { subject, subjectAltName, keyUsage } = new X509Certificate(made.der);
      expect([subject, subjectAltName, keyUsage]).toEqual([`CN=${id}`, `URI:holdfast://node/${id}`, [CLIENT]]);
    });
    await fc.assert(run, RUNS);
  });

  it("ID-02 of a listener is what a library makes of the same content", async () => {
    const run = fc.asyncProperty(hosts, publicKeys, validities, async (names, publicKey, validity) => {
      const made = makeServerCertificate(issuing, { names, publicKey, validity });
      const same = { names: names.map(generalName), usages: [SERVER], publicKey, validity };
      await expectSame(issuing, made, { subject: "Holdfast node-facing API", ...same });
      const leaf = new X509Certificate(made.der);
      for (const name of names) expect(isIP(name) ? leaf.checkIP(name) : leaf.checkHost(name)).toBeDefined();
    });
    await fc.assert(run, RUNS);
  });

  it("ID-02 of a service is what a library makes of the same content", async () => {
    const run = fc.asyncProperty(ids, hosts, publicKeys, validities, async (id, names, publicKey, validity) => {
      const service = { name: "gateway", instanceId: id } as const;
      const made = makeServiceCertificate(issuing, { service, names, publicKey, validity });
      const all = [uri(`holdfast://service/gateway/${id}`), ...names.map(generalName)];
      const same = { names: all, usages: [CLIENT, SERVER], publicKey, validity };
      await expectSame(issuing, made, { subject: "gateway", ...same });
    });
    await fc.assert(run, RUNS);
  });

  it("ID-13 of an ingress is what a library makes of the same content", async () => {
    const run = fc.asyncProperty(
      marks,
      shortNames,
      publicKeys,
      validities,
      async (mark, name, publicKey, validity) => {
        const made = makeIngressCertificate(issuing, { name, mark, publicKey, validity });
        const names = [uri(`holdfast://ingress/${name}`)];
        await expectSame(issuing, made, { subject: mark, names, usages: [CLIENT], publicKey, validity });
      },
    );
    await fc.assert(run, RUNS);
  });

  it("ID-02 has a serial number of its own, positive and of 16 bytes", () => {
    const { publicKey } = keys[2] as KeyPair;
    const validity = validityFrom(new Date(), 3_600_000);
    const make = () => makeNodeCertificate(issuing, { id: "x", publicKey, validity }).serial;
    const serials = Array.from({ length: 100 }, make);
    expect(new Set(serials).size).toBe(100);
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9a-f]{31}$/);
  });

  it("ID-02 names every address as it is, without the zone", () => {
    const names = [
      "::ffff:1.2.3.4",
      "fe80::1%eth0",
      "::",
      "1::",
      "::1",
      "2001:db8:1:2:3:4:5:6",
      "64:ff9b::192.0.2.33",
    ];
    const { publicKey } = keys[2] as KeyPair;
    const { der } = makeServerCertificate(issuing, { names, publicKey, validity: validityFrom(new Date(), 1000) });
    const leaf = new X509Certificate(der);
    for (const name of names) expect(leaf.checkIP(name.replace(/%.*/, "")), name).toBeDefined();
    expect(leaf.subjectAltName?.split(", ")).toHaveLength(names.length);
    expect(leaf.checkIP("::ffff:1.2.3.5")).toBeUndefined();
  });
});

/** As earlier releases made their CAs, which installations keep for years. */
async function libraryAuthority(name: string): Promise<Signer> {
  const privateKey = newPrivateKey();
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const publicKey = await new x509.PublicKey(spki).export();
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    ...{
      serialNumber: "4a",
      name,
      signingAlgorithm: SIGNED,
      notBefore: new Date(),
      notAfter: new Date("2060-01-01"),
    },
    keys: { privateKey: webKey(privateKey), publicKey },
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  });
  return signerOf(Buffer.from(made.rawData), privateKey);
}

describe("a CA", () => {
  it.for([
    ["root", root, root, "CN=Holdfast root CA", 1],
    ["issuing", issuing, root, "CN=Holdfast issuing CA", 0],
  ] as const)(
    "ID-17 (%s) is what a library makes of the same content",
    async ([, own, signer, name, pathLength]) => {
      const ours = new x509.X509Certificate(own.certificate.raw);
      const theirs = await x509.X509CertificateGenerator.create({
        ...{ serialNumber: ours.serialNumber, subject: name, issuer: signer.certificate.subject },
        ...{ notBefore: ours.notBefore, notAfter: ours.notAfter, publicKey: ours.publicKey },
        signingKey: webKey(signer.privateKey),
        signingAlgorithm: SIGNED,
        extensions: [
          new x509.BasicConstraintsExtension(true, pathLength, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
          await x509.SubjectKeyIdentifierExtension.create(ours.publicKey),
          ...(own === signer
            ? []
            : [
                await x509.AuthorityKeyIdentifierExtension.create(
                  new x509.PublicKey(root.certificate.publicKey.export({ type: "spki", format: "der" })),
                ),
              ]),
        ],
      });
      expect(signedPart(own.certificate.raw)).toBe(signedPart(new Uint8Array(theirs.rawData)));
      expect(own.certificate.verify(signer.certificate.publicKey)).toBe(true);
    },
  );

  it.for(["CN=Holdfast issuing CA", "CN=Ünïcode, O=Some organization, C=DE"])(
    "ID-17 that a library made signs certificates that name it: %s",
    async (name) => {
      const signer = await libraryAuthority(name);
      const { publicKey } = keys[3] as KeyPair;
      const validity = validityFrom(new Date(), 3_600_000, { issuer: signer });
      const id = "018f0000-0000-7000-8000-000000000000";
      const made = makeNodeCertificate(signer, { id, publicKey, validity });
      const names = [uri(`holdfast://node/${id}`)];
      await expectSame(signer, made, { subject: id, names, usages: [CLIENT], publicKey, validity });
    },
  );
});
