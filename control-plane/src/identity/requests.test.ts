// Requests that anyone may send: what is accepted, what is refused, and that nothing is accepted which an X.509 library
// refuses. Requests are changed before they are signed too: a changed one is then refused for its form or not at all.

import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import { certificateRequest, newPrivateKey } from "@holdfast/kit/certificate-request";
import { bitString, constructed, element, pem, tag } from "@holdfast/kit/der";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { x509 } from "../../../testkit/identity/x509.ts";
import { anyCharacter } from "../../../testkit/schemas/any-character.ts";
import { readKeyRequest } from "./requests.ts";

const key = newPrivateKey();
const SPKI = { type: "spki", format: "der" } as const;
const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");

type Parts = {
  version?: Buffer;
  subject?: Buffer;
  publicKey?: Buffer;
  attributes?: Buffer;
  algorithm?: Buffer;
  digest?: string;
  unusedBits?: number;
  signer?: KeyObject;
};

const objectId = (hex: string) => element(tag.objectId, Buffer.from(hex, "hex"));
const named = (...parts: Buffer[]) => element(tag.sequence, element(tag.set, element(tag.sequence, ...parts)));
const anyName = named(objectId("550403"), element(tag.utf8String, Buffer.from("x")));
const attribute = (type: Buffer, ...values: Buffer[]) =>
  element(constructed(0), element(tag.sequence, type, element(tag.set, ...values)));
const publicKeyOf = (one: KeyObject) => createPublicKey(one).export(SPKI);

function infoOf(parts: Parts): Buffer {
  return element(
    tag.sequence,
    parts.version ?? element(tag.integer, Buffer.from([0])),
    parts.subject ?? anyName,
    parts.publicKey ?? publicKeyOf(parts.signer ?? key),
    parts.attributes ?? element(constructed(0)),
  );
}

/** Signed properly, whatever its parts are. */
function requestOf(parts: Parts, info = infoOf(parts)): string {
  const digest = parts.signer?.asymmetricKeyType === "ed25519" ? null : (parts.digest ?? "sha256");
  const signature = sign(digest, info, parts.signer ?? key);
  const bits =
    parts.unusedBits === undefined
      ? bitString(signature)
      : element(tag.bitString, Buffer.from([parts.unusedBits]), signature);
  return asPem(element(tag.sequence, info, parts.algorithm ?? ECDSA_WITH_SHA256, bits));
}

const asPem = (der: Buffer) => pem("CERTIFICATE REQUEST", der);
const derOf = (request: string) => Buffer.from(request.replace(/-----[^-]+-----/g, ""), "base64");

/** Whether it was accepted. Everything that is not `csr_invalid` is a fault of the reader. */
function accepts(request: string): boolean {
  try {
    readKeyRequest(request);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === "csr_invalid") return false;
    throw error;
  }
}

async function libraryAccepts(request: string): Promise<boolean> {
  try {
    const parsed = new x509.Pkcs10CertificateRequest(request);
    const { namedCurve } = parsed.publicKey.algorithm as { namedCurve?: string };
    return namedCurve === "P-256" && (await parsed.verify());
  } catch {
    return false;
  }
}

/** How a request can depart from its form, in bytes. */
const changes: fc.Arbitrary<(bytes: Buffer) => Buffer> = fc.oneof(
  fc.tuple(fc.nat(), fc.integer({ min: 0, max: 7 })).map(([at, bit]) => (bytes: Buffer) => {
    const changed = Buffer.from(bytes);
    changed[at % bytes.length] = (changed[at % bytes.length] ?? 0) ^ (1 << bit);
    return changed;
  }),
  fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })).map(([at, byte]) => (bytes: Buffer) => {
    const changed = Buffer.from(bytes);
    changed[at % bytes.length] = byte;
    return changed;
  }),
  fc.nat().map((at) => (bytes: Buffer) => bytes.subarray(0, at % bytes.length)),
  fc.tuple(fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 9 })).map(([at, more]) => (bytes: Buffer) => {
    const place = at % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, place), more, bytes.subarray(place)]);
  }),
  fc.tuple(fc.nat(), fc.integer({ min: 1, max: 9 })).map(([at, count]) => (bytes: Buffer) => {
    const place = at % bytes.length;
    return Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + count)]);
  }),
  // A length in another form, or another length.
  fc
    .tuple(fc.nat(), fc.constantFrom("80", "8100", "817f", "820001", "84ffffffff", "8800000000000000ff", "ff"))
    .map(([at, length]) => (bytes: Buffer) => {
      const place = at % bytes.length;
      return Buffer.concat([bytes.subarray(0, place), Buffer.from(length, "hex"), bytes.subarray(place + 1)]);
    }),
);

const tags = fc.oneof(fc.constantFrom<number>(...Object.values(tag), 0x05, 0x0a, 0xa0, 0x80), fc.nat(255));
/** Elements of any tag and content, properly nested. */
const { trees } = fc.letrec<{ trees: Buffer }>((tie) => ({
  trees: fc.oneof(
    { depthSize: "small" },
    fc.tuple(tags, fc.uint8Array({ maxLength: 12 })).map(([one, content]) => element(one, content)),
    fc
      .tuple(fc.constantFrom(tag.sequence, tag.set, 0xa0, 0xa3), fc.array(tie("trees"), { maxLength: 3 }))
      .map(([one, parts]) => element(one, ...parts)),
  ),
}));
const objectIds = fc.oneof(
  fc.constant(objectId("550403")),
  fc.uint8Array({ maxLength: 6 }).map((bytes) => element(tag.objectId, bytes)),
);
const texts = fc
  .tuple(
    tags,
    fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.string().map((text) => Buffer.from(text)),
    ),
  )
  .map(([one, content]) => element(one, content));

const subjects = fc.oneof(
  trees,
  fc.tuple(objectIds, fc.oneof(trees, texts)).map((parts) => named(...parts)),
);
const attributes = fc.oneof(
  trees,
  fc.array(trees, { maxLength: 3 }).map((parts) => element(constructed(0), ...parts)),
  fc.tuple(objectIds, fc.array(trees, { maxLength: 3 })).map(([type, values]) => attribute(type, ...values)),
);

describe("a request", () => {
  it("ID-02 of an agent is accepted, whatever it calls itself", () => {
    const run = fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), (name) => {
      expect(readKeyRequest(certificateRequest(key, name)).publicKey).toEqual(publicKeyOf(key));
    });
    fc.assert(run);
  });

  it("ID-02 of others is accepted with any name, unless it asks for more than a certificate of its key", async () => {
    const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
    const content = {
      name: "CN=machine, O=Some organization, C=DE, E=someone@example.com",
      keys,
      signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    };
    const plain = await x509.Pkcs10CertificateRequestGenerator.create(content);
    const { publicKey } = readKeyRequest(plain.toString("pem"));
    expect(publicKey).toEqual(Buffer.from(await crypto.subtle.exportKey("spki", keys.publicKey)));
    const asking = await x509.Pkcs10CertificateRequestGenerator.create({
      ...content,
      extensions: [
        new x509.BasicConstraintsExtension(true, 3, true),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "api.example.com" }]),
      ],
      attributes: [new x509.ChallengePasswordAttribute("secret")],
    });
    expect(accepts(asking.toString("pem"))).toBe(false);
  });

  const cut = derOf(requestOf({})).subarray(0, -1);
  const spki = publicKeyOf(key);
  const offCurve = Buffer.from(spki);
  offCurve[spki.length - 1] = (offCurve[spki.length - 1] ?? 0) ^ 1;
  const x = spki.subarray(27, 59);
  const compressed = element(
    tag.sequence,
    spki.subarray(2, 23),
    bitString(Buffer.concat([Buffer.from([2 + ((spki.at(-1) ?? 0) & 1)]), x])),
  );
  const ec = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve }).privateKey;
  const explicitCurve = generateKeyPairSync("ec", { namedCurve: "P-256", paramEncoding: "explicit" }).privateKey;
  const deep = (levels: number) => {
    let nested = element(tag.sequence);
    for (let level = 1; level < levels; level += 1) nested = element(tag.sequence, nested);
    return attribute(objectId("550403"), nested);
  };
  const sequenceOf = (hex: string) => Buffer.from(`30${hex}`, "hex");

  const refused: Record<string, string> = {
    "is empty": "",
    "is no PEM": "nonsense",
    "is a PEM block of another type": pem("CERTIFICATE", derOf(requestOf({}))),
    "comes twice": requestOf({}).repeat(2),
    "has letters that are not base64": requestOf({}).replace("\nMI", "\n_MI"),
    "is padded wrongly": requestOf({}).replace(/=*\n-----END/, "====\n-----END"),
    "is cut short": asPem(cut),
    "goes on after its end": asPem(Buffer.concat([derOf(requestOf({})), Buffer.from([0])])),
    "has another request after it": asPem(Buffer.concat([derOf(requestOf({})), derOf(requestOf({}))])),
    "has an indefinite length": asPem(
      Buffer.concat([sequenceOf("80"), derOf(requestOf({})).subarray(3), Buffer.alloc(2)]),
    ),
    "has a length that is too long": asPem(
      Buffer.concat([sequenceOf("84ffffffff"), derOf(requestOf({})).subarray(3)]),
    ),
    "has a length of too many bytes": requestOf({ subject: sequenceOf("820000") }),
    "has an indefinite length inside": requestOf({ subject: sequenceOf("800000") }),
    "has a length with a leading zero": requestOf({ subject: sequenceOf("8100") }),
    "is nested deeply": requestOf({ attributes: deep(600) }),
    "has an attribute": requestOf({ attributes: deep(1) }),
    "is of another version": requestOf({ version: element(tag.integer, Buffer.from([1])) }),
    "has a version of two bytes": requestOf({ version: element(tag.integer, Buffer.from([0, 0])) }),
    "has no attributes field": requestOf({ attributes: Buffer.alloc(0) }),
    "has a name that is not text": requestOf({
      subject: named(objectId("550403"), element(tag.utf8String, Buffer.from([0xff]))),
    }),
    "has a name of no type": requestOf({ subject: named(element(tag.utf8String), element(tag.utf8String)) }),
    "has a signature with unused bits": requestOf({ unusedBits: 1 }),
    "has a signature of nothing": asPem(
      element(tag.sequence, infoOf({}), ECDSA_WITH_SHA256, element(tag.bitString)),
    ),
    "is signed with another key": requestOf({ publicKey: publicKeyOf(newPrivateKey()) }),
    "is signed by another digest than it says": requestOf({ digest: "sha384" }),
    "is signed by SHA-384, as it says": requestOf({
      digest: "sha384",
      algorithm: sequenceOf("0a06082a8648ce3d040303"),
    }),
    "has parameters of its signature": requestOf({ algorithm: sequenceOf("0c06082a8648ce3d0403020500") }),
    "has a P-384 key": requestOf({ signer: ec("P-384") }),
    "has a secp256k1 key": requestOf({ signer: ec("secp256k1") }),
    "has a key on a curve that it describes itself": requestOf({ signer: explicitCurve }),
    "has an Ed25519 key": requestOf({ signer: generateKeyPairSync("ed25519").privateKey }),
    "has an RSA key": requestOf({ signer: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey }),
    "has a point that is not on the curve": requestOf({ publicKey: offCurve }),
    "has a compressed point": requestOf({ publicKey: compressed }),
  };

  it.each(Object.entries(refused))("ID-02 that %s is refused", (_, request) => {
    expect(accepts(request)).toBe(false);
  });

  it("ID-02 that was changed on the way is refused", () => {
    const der = derOf(requestOf({}));
    const run = fc.property(fc.array(changes, { minLength: 1, maxLength: 3 }), (several) => {
      const changed = several.reduce<Buffer>((bytes, change) => (bytes.length === 0 ? bytes : change(bytes)), der);
      fc.pre(!changed.equals(der));
      expect(accepts(asPem(changed))).toBe(false);
    });
    fc.assert(run, { numRuns: 2_000 });
  });

  it("ID-02 of any form, signed properly, is accepted only if a library accepts it too", async () => {
    const run = fc.asyncProperty(fc.array(changes, { minLength: 1, maxLength: 2 }), async (several) => {
      const info = several.reduce<Buffer>(
        (bytes, change) => (bytes.length === 0 ? bytes : change(bytes)),
        infoOf({}),
      );
      const request = requestOf({}, info);
      if (accepts(request)) expect(await libraryAccepts(request)).toBe(true);
    });
    await fc.assert(run, { numRuns: 1_500 });
  });

  it("ID-02 with any name and attributes, signed properly, is accepted only if a library accepts it too", async () => {
    let accepted = 0;
    const parts = fc.record({ subject: subjects, attributes }, { requiredKeys: [] });
    const run = fc.asyncProperty(parts, async (some) => {
      const request = requestOf(some);
      if (!accepts(request)) return;
      accepted += 1;
      expect(await libraryAccepts(request)).toBe(true);
    });
    await fc.assert(run, { numRuns: 1_500 });
    expect(accepted).toBeGreaterThan(0);
  });

  it("ID-02 of any text is refused without more", () => {
    const run = fc.property(
      fc.oneof(
        fc.string(),
        fc.uint8Array({ maxLength: 400 }).map((bytes) => asPem(Buffer.from(bytes))),
      ),
      (text) => {
        expect(accepts(text)).toBe(false);
      },
    );
    fc.assert(run, { numRuns: 1_000 });
  });
});
