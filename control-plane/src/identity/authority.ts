// The installation's own CA: a root that agents trust, and the issuing CAs below it. Both are sealed
// in the keyring. A server that has nodes but not their root never creates a new one: that would
// lock out every node without a message.

import { createPrivateKey, hash, X509Certificate } from "node:crypto";
import { privateKeyPem } from "@holdfast/kit/certificate-request";
import { pem } from "@holdfast/kit/der";
import { type Signed, type Statement, signStatement } from "@holdfast/kit/signed-statement";
import { type Issuers, issuersOf } from "@holdfast/service/node-identity/certificate";
import type { Sql } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import {
  BACK_DATED_MS,
  CANARY_VALIDITY_MS,
  type KeyPair,
  type Made,
  makeCanaryCertificate,
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
  signerOf,
  validityFrom,
} from "./certificates.ts";

/** The holder has the key: a node, or another process of this installation. */
export type Issued = { serial: string; chain: string; notBefore: Date; notAfter: Date };
/** `issuer`: SHA-256 of the CA's certificate (DER), hex. */
export type IssuedToNode = Issued & { issuer: string };
/** What an ingress presents to the control plane (`chain`) and to nodes (`listenerChain`). */
export type IssuedToIngress = { chain: string; listenerChain: string; notAfter: Date };
/** Key and chain, PEM. */
export type IssuedCanary = { id: string; cert: string; key: string };
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
  /** `publicKey`, here and below: SubjectPublicKeyInfo, DER. */
  issueToNode(node: { id: string; publicKey: Buffer }, now: Date): IssuedToNode;
  issueCanary(id: string, now: Date): IssuedCanary;
  issueToServer(names: readonly string[], now: Date): IssuedToServer;
  issueToService(service: ServiceIdentity & { names: readonly string[]; publicKey: Buffer }, now: Date): Issued;
  issueToIngress(
    ingress: {
      name: string;
      mark: string;
      publicKey: Buffer;
      listener: { names: readonly string[]; publicKey: Buffer };
    },
    now: Date,
  ): IssuedToIngress;
};

const ROOT = "ca:root";
const ISSUING = "ca:issuing";
/** An issuing CA is followed by another while this much of its lifetime is left. */
const OVERLAP_MS = 90 * 24 * 60 * 60_000;

/** Undefined: there are nodes, but the root that they trust is missing. */
export async function openAuthority(system: Sql, keyring: Keyring, now: Date): Promise<Authority | undefined> {
  const stored = await keyring.get(ROOT);
  if (!stored && (await hasNodes(system))) return undefined;
  const root = readSigner(stored ?? (await keepFirst(keyring, ROOT, newRoot(now))));
  return authorityOf(root, await issuingOf(keyring, root, now));
}

/** Trusted by no agent: lets a server without its CA start its listener and report that the CA is missing. */
export function temporaryAuthority(now: Date): Authority {
  const root = readSigner(newRoot(now));
  return authorityOf(root, [readSigner(newIssuing(root, now))]);
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
    const enough = newest && newest.notAfter.getTime() > now.getTime() + OVERLAP_MS;
    const stored = await keyring.get(name);
    if (!stored && enough) return all;
    all.push(readSigner(stored ?? (await keepFirst(keyring, name, newIssuing(root, now)))));
  }
}

function authorityOf(root: Signer, issuing: readonly Signer[]): Authority {
  const newest = issuing.at(-1);
  if (!newest) throw new Error("a CA without an issuing certificate");
  const behindLeaf = newest.certificate.toString();
  const issuer = hash("sha256", newest.certificate.raw, "hex");
  const chainOf = (leaf: Made) => `${pem("CERTIFICATE", leaf.der)}${behindLeaf}`;
  const rootPem = root.certificate.toString();
  const rootSha256 = hash("sha256", root.certificate.raw, "hex");
  const rootKey = { kid: rootSha256, privateKey: root.privateKey };

  return {
    trustBundle: [rootPem],
    bundleVersion: 1,
    signAsRoot: (statement) => signStatement([rootKey], statement),
    rootSha256: [rootSha256],
    rootDigest: hash("sha256", root.certificate.raw, "base64url"),
    certificates: [rootPem, ...issuing.map(({ certificate }) => certificate.toString())],
    issueToNode({ id, publicKey }, now) {
      const validity = validityFrom(now, NODE_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const leaf = makeNodeCertificate(newest, { id, publicKey, validity });
      return { serial: leaf.serial, chain: chainOf(leaf), issuer, ...validity };
    },
    issueCanary(id, now) {
      const validity = validityFrom(now, CANARY_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const { publicKey, privateKey } = makeKeyPair();
      const leaf = makeCanaryCertificate(newest, { id, publicKey, validity });
      return { id, cert: chainOf(leaf), key: privateKeyPem(privateKey) };
    },
    issueToServer(names, now) {
      const validity = validityFrom(now, SERVER_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const { publicKey, privateKey } = makeKeyPair();
      const leaf = makeServerCertificate(newest, { names, publicKey, validity });
      return { cert: chainOf(leaf), key: privateKeyPem(privateKey), ...validity };
    },
    issueToService({ name, instanceId, names, publicKey }, now) {
      const validity = validityFrom(now, SERVICE_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const service = { name, instanceId };
      const leaf = makeServiceCertificate(newest, { service, names, publicKey, validity });
      return { serial: leaf.serial, chain: chainOf(leaf), ...validity };
    },
    issueToIngress({ name, mark, publicKey, listener }, now) {
      const validity = validityFrom(now, SERVER_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const own = makeIngressCertificate(newest, { name, mark, publicKey, validity });
      const listening = makeServerCertificate(newest, { ...listener, validity });
      return { chain: chainOf(own), listenerChain: chainOf(listening), notAfter: validity.notAfter };
    },
    ...issuersOf(issuing.map(({ certificate }) => certificate)),
  };
}

function newRoot(now: Date): Buffer {
  const keys = makeKeyPair();
  return sealable(keys, makeRoot(keys, now));
}

function newIssuing(root: Signer, now: Date): Buffer {
  const keys = makeKeyPair();
  return sealable(keys, makeIssuing(root, keys, now));
}

/** When several replicas create one, the first is stored, and all of them use it. */
function keepFirst(keyring: Keyring, name: string, made: Buffer): Promise<Buffer> {
  return keyring.getOrCreate(name, () => made);
}

function sealable({ privateKey }: KeyPair, { der }: Made): Buffer {
  return Buffer.from(`${privateKeyPem(privateKey)}${pem("CERTIFICATE", der)}`);
}

/** OpenSSL finds the key and the certificate by the names of their blocks. */
function readSigner(sealed: Buffer): Signer {
  return signerOf(new X509Certificate(sealed).raw, createPrivateKey(sealed));
}
