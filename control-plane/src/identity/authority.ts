// The installation's own CA: a root that agents trust, and the issuing CAs below it. Both are sealed
// in the keyring. A server that has nodes but not their root never makes a new one: that would cut
// off every node, silently.

import { hash, KeyObject, webcrypto, X509Certificate } from "node:crypto";
import { type Signed, type Statement, signStatement } from "@holdfast/kit/signed-statement";
import { type Issuers, issuersOf } from "@holdfast/service/node-identity/certificate";
import type { Sql } from "../database/connect.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import {
  BACK_DATED_MS,
  importPrivateKey,
  type KeyPair,
  lifeOf,
  makeIngressCertificate,
  makeIssuing,
  makeKeyPair,
  makeNodeCertificate,
  makeRoot,
  makeServerCertificate,
  makeServiceCertificate,
  NODE_LIFE_MS,
  SERVER_LIFE_MS,
  SERVICE_LIFE_MS,
  type ServiceIdentity,
  type Signer,
} from "./certificates.ts";
import { x509 } from "./x509.ts";

/** To whom keeps the key: a node, or another process of ours. */
export type Issued = { serial: string; chain: string; notBefore: Date; notAfter: Date };
/** To an ingress: what it shows to us, and what it shows to nodes. */
export type IssuedToIngress = { chain: string; listenerChain: string; notAfter: Date };
export type IssuedToServer = { cert: string; key: string; notBefore: Date; notAfter: Date };

export type Authority = Issuers & {
  /** PEM, one certificate each. */
  trustBundle: readonly string[];
  /** How many bundles there have been: rises with every root that is added. */
  bundleVersion: number;
  /** With the key of the root, which never leaves the api: whoever has the root can check it. */
  signAsRoot<S extends Statement>(statement: S): Signed<S>;
  /** SHA-256 of each trusted root (DER), hex. */
  rootSha256: readonly string[];
  /** What an enrollment token carries behind the dot. */
  rootDigest: string;
  /** Roots and issuing CAs, for the list that the listener shows to agents. */
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
/** An issuing CA is followed by another while this much of its life is left. */
const OVERLAP_MS = 90 * 24 * 60 * 60_000;

/** Undefined: there are nodes, but the root they trust is gone. */
export async function openAuthority(system: Sql, keyring: Keyring, now: Date): Promise<Authority | undefined> {
  const stored = await keyring.get(ROOT);
  if (!stored && (await hasNodes(system))) return undefined;
  const root = await readSigner(stored ?? (await keepFirst(keyring, ROOT, await newRoot(now))));
  return authorityOf(root, await issuingOf(keyring, root, now));
}

/** Of no worth to anybody: lets a server without its CA answer that it is not the server agents look for. */
export async function temporaryAuthority(now: Date): Promise<Authority> {
  const root = await readSigner(await newRoot(now));
  return authorityOf(root, [await readSigner(await newIssuing(root, now))]);
}

async function hasNodes(system: Sql): Promise<boolean> {
  const [row] = await system<{ any: boolean }[]>`SELECT EXISTS (SELECT FROM nodes) AS any`;
  return row?.any === true;
}

/** Newest last. Replicas that make one at the same time end up with the same. */
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
      const life = lifeOf(now, NODE_LIFE_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const leaf = await makeNodeCertificate(newest, { id, publicKey, life });
      return { serial: leaf.serialNumber.toLowerCase(), chain: chainOf(leaf), ...life };
    },
    async issueToServer(names, now) {
      const life = lifeOf(now, SERVER_LIFE_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const keys = await makeKeyPair();
      const leaf = await makeServerCertificate(newest, { names, publicKey: keys.publicKey, life });
      return { cert: chainOf(leaf), key: await pemOfKey(keys.privateKey), ...life };
    },
    async issueToService({ name, instanceId, names, publicKey }, now) {
      const life = lifeOf(now, SERVICE_LIFE_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const leaf = await makeServiceCertificate(newest, { service: { name, instanceId }, names, publicKey, life });
      return { serial: leaf.serialNumber.toLowerCase(), chain: chainOf(leaf), ...life };
    },
    async issueToIngress({ name, mark, publicKey, listener }, now) {
      const life = lifeOf(now, SERVER_LIFE_MS, { backDatedMs: BACK_DATED_MS, issuer: newest });
      const [own, shown] = await Promise.all([
        makeIngressCertificate(newest, { name, mark, publicKey, life }),
        makeServerCertificate(newest, { ...listener, life }),
      ]);
      return { chain: chainOf(own), listenerChain: chainOf(shown), notAfter: life.notAfter };
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

/** Of several replicas that offer one, the first one's is kept; all get that. */
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
