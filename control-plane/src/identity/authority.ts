// The installation's own CA: a root that agents trust, and the issuing CAs below it. Both are sealed
// in the keyring. A server that has nodes but not their root never creates a new one: that would
// lock out every node without a message.

import { hash, KeyObject, webcrypto, X509Certificate } from "node:crypto";
import { type Signed, type Statement, signStatement } from "@holdfast/kit/signed-statement";
import { type Issuers, issuersOf } from "@holdfast/service/node-identity/certificate";
import type { Sql } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import {
  BACK_DATED_MS,
  importPrivateKey,
  type KeyPair,
  makeIngressCertificate,
  makeIssuing,
  makeKeyPair,
  makeNodeCertificate,
  makeRoot,
  makeServerCertificate,
  makeServiceCertificate,
  NODE_VALIDITY_MS,
  SERVER_VALIDITY_MS,
  SERVICE_VALIDITY_MS,
  type ServiceIdentity,
  type Signer,
  validityFrom,
} from "./certificates.ts";
import { x509 } from "./x509.ts";

/** The holder has the key: a node, or another process of this installation. */
export type Issued = { serial: string; chain: string; notBefore: Date; notAfter: Date };
/** What an ingress presents to the control plane (`chain`) and to nodes (`listenerChain`). */
export type IssuedToIngress = { chain: string; listenerChain: string; notAfter: Date };
export type IssuedToServer = { cert: string; key: string; notBefore: Date; notAfter: Date };

export type Authority = Issuers & {
  /** PEM, one certificate each. */
  trustBundle: readonly string[];
  /** Increases with every root that is added. */
  bundleVersion: number;
  /** Signs with the root's key, which never leaves the api: everyone who has the root can verify it. */
  signAsRoot<S extends Statement>(statement: S): Signed<S>;
  /** SHA-256 of each trusted root (DER), hex. */
  rootSha256: readonly string[];
  /** The part of an enrollment token after the dot. */
  rootDigest: string;
  /** Roots and issuing CAs, for the list that the listener sends to agents. */
  certificates: readonly string[];
  issueToNode(node: { id: string; publicKey: x509.PublicKey }, now: Date): Promise<Issued>;
  issueToServer(names: readonly string[], now: Date): Promise<IssuedToServer>;
  issueToService(
    service: ServiceIdentity & { names: readonly string[]; publicKey: x509.PublicKey },
    now: Date,
  ): Promise<Issued>;
  issueToIngress(
    ingress: {
      name: string;
      mark: string;
      publicKey: x509.PublicKey;
      listener: { names: readonly string[]; publicKey: x509.PublicKey };
    },
    now: Date,
  ): Promise<IssuedToIngress>;
};

const ROOT = "ca:root";
const ISSUING = "ca:issuing";
/** An issuing CA is followed by another while this much of its lifetime is left. */
const OVERLAP_MS = 90 * 24 * 60 * 60_000;

/** Undefined: there are nodes, but the root that they trust is missing. */
export async function openAuthority(system: Sql, keyring: Keyring, now: Date): Promise<Authority | undefined> {
  const stored = await keyring.get(ROOT);
  if (!stored && (await hasNodes(system))) return undefined;
  const root = await readSigner(stored ?? (await keepFirst(keyring, ROOT, await newRoot(now))));
  return authorityOf(root, await issuingOf(keyring, root, now));
}

/** Trusted by no agent: lets a server without its CA start its listener and report that the CA is missing. */
export async function temporaryAuthority(now: Date): Promise<Authority> {
  const root = await readSigner(await newRoot(now));
  return authorityOf(root, [await readSigner(await newIssuing(root, now))]);
}

async function hasNodes(system: Sql): Promise<boolean> {
  const [row] = await system<{ any: boolean }[]>`SELECT EXISTS (SELECT FROM nodes) AS any`;
  return row?.any === true;
}

/** Newest last. Replicas that create one at the same time end up with the same. */
async function issuingOf(keyring: Keyring, root: Signer, now: Date): Promise<Signer[]> {
  const all: Signer[] = [];
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? ISSUING : `${ISSUING}:${count}`;
    const newest = all.at(-1);
    const enough = newest && newest.certificate.notAfter.getTime() > now.getTime() + OVERLAP_MS;
    const stored = await keyring.get(name);
    if (!stored && enough) return all;
    all.push(await readSigner(stored ?? (await keepFirst(keyring, name, await newIssuing(root, now)))));
  }
}

function authorityOf(root: Signer, issuing: readonly Signer[]): Authority {
  const newest = issuing.at(-1);
  if (!newest) throw new Error("a CA without an issuing certificate");
  const rootDer = Buffer.from(root.certificate.rawData);
  const issuers = issuing.map(({ certificate }) => new X509Certificate(Buffer.from(certificate.rawData)));
  const behindLeaf = `${newest.certificate.toString("pem")}\n`;
  const chainOf = (leaf: x509.X509Certificate) => `${leaf.toString("pem")}\n${behindLeaf}`;
  const rootPem = `${root.certificate.toString("pem")}\n`;
  const rootSha256 = hash("sha256", rootDer, "hex");
  const rootKey = { kid: rootSha256, privateKey: KeyObject.from(root.privateKey) };

  return {
    trustBundle: [rootPem],
    bundleVersion: 1,
    signAsRoot: (statement) => signStatement([rootKey], statement),
    rootSha256: [rootSha256],
    rootDigest: hash("sha256", rootDer, "base64url"),
    certificates: [rootPem, ...issuing.map(({ certificate }) => `${certificate.toString("pem")}\n`)],
    async issueToNode({ id, publicKey }, now) {
      const validity = validityFrom(now, NODE_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const leaf = await makeNodeCertificate(newest, { id, publicKey, validity });
      return { serial: leaf.serialNumber.toLowerCase(), chain: chainOf(leaf), ...validity };
    },
    async issueToServer(names, now) {
      const validity = validityFrom(now, SERVER_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const keys = await makeKeyPair();
      const leaf = await makeServerCertificate(newest, { names, publicKey: keys.publicKey, validity });
      return { cert: chainOf(leaf), key: await pemOfKey(keys.privateKey), ...validity };
    },
    async issueToService({ name, instanceId, names, publicKey }, now) {
      const validity = validityFrom(now, SERVICE_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const leaf = await makeServiceCertificate(newest, {
        service: { name, instanceId },
        names,
        publicKey,
        validity,
      });
      return { serial: leaf.serialNumber.toLowerCase(), chain: chainOf(leaf), ...validity };
    },
    async issueToIngress({ name, mark, publicKey, listener }, now) {
      const validity = validityFrom(now, SERVER_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const [own, listening] = await Promise.all([
        makeIngressCertificate(newest, { name, mark, publicKey, validity }),
        makeServerCertificate(newest, { ...listener, validity }),
      ]);
      return { chain: chainOf(own), listenerChain: chainOf(listening), notAfter: validity.notAfter };
    },
    ...issuersOf(issuers),
  };
}

async function newRoot(now: Date): Promise<Buffer> {
  const keys = await makeKeyPair();
  return sealable(keys, await makeRoot(keys, now));
}

async function newIssuing(root: Signer, now: Date): Promise<Buffer> {
  const keys = await makeKeyPair();
  return sealable(keys, await makeIssuing(root, keys, now));
}

/** When several replicas create one, the first is stored, and all of them use it. */
function keepFirst(keyring: Keyring, name: string, made: Buffer): Promise<Buffer> {
  return keyring.getOrCreate(name, () => made);
}

async function sealable(keys: KeyPair, certificate: x509.X509Certificate): Promise<Buffer> {
  return Buffer.from(`${await pemOfKey(keys.privateKey)}${certificate.toString("pem")}\n`);
}

async function readSigner(sealed: Buffer): Promise<Signer> {
  const [key, certificate] = x509.PemConverter.decode(sealed.toString());
  if (!key || !certificate) throw new Error("a sealed CA must hold a key and a certificate");
  return {
    privateKey: await importPrivateKey(new Uint8Array(key)),
    certificate: new x509.X509Certificate(certificate),
  };
}

async function pemOfKey(key: webcrypto.CryptoKey): Promise<string> {
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", key);
  return `${x509.PemConverter.encode(pkcs8, "PRIVATE KEY")}\n`;
}
