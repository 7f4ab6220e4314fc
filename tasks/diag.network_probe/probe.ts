// Takes the hops of one endpoint in order and stops at the first that fails.

import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import tls, { type DetailedPeerCertificate } from "node:tls";
import { gatewayListeners } from "@holdfast/contracts/headers";
import { IDENTITY_PATH, PROBE_QUERY, WAIT_PATH } from "@holdfast/contracts/node/limits";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { readFileIfPresent } from "@holdfast/kit/files";
import type { z } from "zod";
import { checkAddress, saysLoopback } from "./check-address.ts";
import type contract from "./contract.ts";
import { askWithCertificate, HopFailed, openTcp, resolveHost, shakeHands, type Timing } from "./hops.ts";

export type EndpointReport = z.input<typeof contract.result>["endpoints"][number];
type Hop = EndpointReport["hops"][number];

/** These know nodes by certificate, and must be the server this node was enrolled with. */
const nodeFacing = new Set(["node_api", "node_terminal"]);
const MOST_ADDRESSES = 16;
const NO_NODE = "00000000-0000-0000-0000-000000000000";
/** Of those that may be connected to, so that a long list does not take all the time there is. */
const MOST_TRIED = 4;

export type Way = {
  stateDir: string;
  profile: EnvironmentProfile;
  timing: Timing;
  /** Of the probe of `tasks/wait`. */
  holdSeconds?: number;
  /** Somebody on the host chose the addresses: they may be loopback. */
  loopback?: boolean;
};

export async function probeEndpoint(name: string, way: Way): Promise<EndpointReport> {
  const { stateDir, profile, timing } = way;
  const report: EndpointReport = {
    ...{ name, host: "", port: null, ok: false, hops: [] },
    ...{ addresses: [], address: null, certificate: null },
  };
  const hop = <T>(kind: Hop["hop"], take: () => T | Promise<T>) => takeHop(report.hops, kind, take);
  try {
    const { host, port, secure } = await readEndpoint(report, profile);
    const resolved = await hop("dns", () =>
      Object.hasOwn(profile.resolve, host) ? (profile.resolve[host] ?? []) : resolveHost(host, timing),
    );
    report.addresses = resolved.slice(0, MOST_ADDRESSES);
    const allowed = await hop("address", () => allowedOf(resolved, host, way.loopback));
    const socket = await hop("tcp", () => openFirst(allowed, port, timing));
    report.address = socket.remoteAddress ?? null;
    if (!secure) {
      socket.destroy();
    } else {
      const trust = readCertificates(join(stateDir, "trust.pem"));
      const ca = [...trust.map(String), ...(nodeFacing.has(name) ? [] : tls.rootCertificates)];
      await hop("tls", async () => {
        const { certificate, untrusted, protocol } = await shakeHands(socket, { host, ca, timing });
        report.certificate = describe(certificate, { trusted: !untrusted, trust, protocol });
        if (trust.length === 0 && nodeFacing.has(name))
          throw new HopFailed(
            "trust_bundle_missing",
            "trust.pem in the agent's state directory holds no certificate",
          );
        if (untrusted && nodeFacing.has(name) && (await isPublic(report.address ?? "", { host, port, timing })))
          throw new HopFailed("edge_ends_tls", "a public CA issued the certificate, so an edge ends TLS here");
        if (untrusted) throw new HopFailed("tls_untrusted", untrusted);
      });
      if (nodeFacing.has(name)) await presentIdentity(hop, { name, host, port, ca, report, way });
    }
    report.ok = true;
  } catch (error) {
    if (!(error instanceof HopFailed)) throw error;
  }
  return report;
}

type Present = {
  name: string;
  host: string;
  port: number;
  ca: string[];
  report: EndpointReport;
  way: Way;
};

/** With the node's certificate: whether it is accepted, and at the API also whether tasks can be waited for. */
async function presentIdentity(
  hop: <T>(kind: Hop["hop"], take: () => T | Promise<T>) => Promise<T>,
  { name, host, port, ca, report, way: { stateDir, timing, holdSeconds = 0 } }: Present,
): Promise<void> {
  const listener = name === "node_terminal" ? gatewayListeners.node : undefined;
  let identity = "";
  const question = async (path: string, withinMs: number) => {
    const socket = await openTcp(report.address ?? "", port, timing);
    const asked = path.replace("{node_id}", nodeIdIn(identity));
    return askWithCertificate(socket, { host, ca, timing, identity }, { path: asked, listener, withinMs });
  };
  await hop("mtls", async () => {
    identity = readFileIfPresent(join(stateDir, "identity.pem")) ?? "";
    if (identity === "")
      throw new HopFailed("identity_missing", "identity.pem is not in the agent's state directory");
    const { status, code, body } = await question(IDENTITY_PATH, timing.hopMs);
    if (status === 200 && body?.["node_id"] === nodeIdIn(identity)) return;
    const refused = status === 401 || status === 403;
    const said = `the server answered ${status} ${code ?? ""}`.trim();
    throw new HopFailed(refused ? "mtls_refused" : "mtls_failed", said, code);
  });
  if (name !== "node_api") return;
  await hop("task_wait", async () => {
    const path = `${WAIT_PATH}?${PROBE_QUERY}&wait=${holdSeconds}`;
    const { status, code, body } = await question(path, timing.hopMs + holdSeconds * 1000).catch(asWait);
    if (status === 200 && body?.["probe"] === true) return;
    throw new HopFailed("wait_failed", `the server answered ${status} ${code ?? ""}`.trim(), code);
  });
}

/** The certificate was accepted just before, so that what fails now is about holding the request. */
function asWait(error: unknown): never {
  if (!(error instanceof HopFailed)) throw error;
  if (error.code === "mtls_timeout") throw new HopFailed("wait_timeout", error.message);
  if (error.code === "mtls_refused" && error.serverCode === undefined)
    throw new HopFailed("idle_cut", `the connection was closed before the response: ${error.message}`);
  throw error;
}

/** Whether the server would be trusted by a browser: then it is not a node-facing listener. */
async function isPublic(
  address: string,
  { host, port, timing }: { host: string; port: number; timing: Timing },
): Promise<boolean> {
  const socket = await openTcp(address, port, timing);
  const { untrusted } = await shakeHands(socket, { host, ca: tls.getCACertificates("default"), timing });
  return !untrusted;
}

async function takeHop<T>(hops: Hop[], hop: Hop["hop"], take: () => T | Promise<T>): Promise<T> {
  const begun = performance.now();
  const elapsed = () => Math.round((performance.now() - begun) * 10) / 10;
  try {
    const value = await take();
    hops.push({ hop, ok: true, ms: elapsed(), code: null, server_code: null, detail: null });
    return value;
  } catch (error) {
    if (error instanceof HopFailed) {
      const { code, serverCode: server_code = null, message } = error;
      hops.push({ hop, ok: false, ms: elapsed(), code, server_code, detail: message.slice(0, 300) });
    }
    throw error;
  }
}

async function readEndpoint(report: EndpointReport, profile: EnvironmentProfile) {
  const url = URL.parse(profile.endpoints[report.name] ?? "");
  const defaultPort = { "https:": 443, "wss:": 443, "http:": 80, "ws:": 80 }[url?.protocol ?? ""];
  if (!url || defaultPort === undefined)
    return takeHop(report.hops, "dns", () => {
      throw new HopFailed("endpoint_invalid", "the profile does not hold a URL of http, https, ws or wss there");
    });
  const port = url.port ? Number(url.port) : defaultPort;
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  Object.assign(report, { host, port });
  return { host, port, secure: defaultPort === 443 };
}

export function allowedOf(addresses: readonly string[], host: string, trusted = false): string[] {
  const loopback = trusted || saysLoopback(host);
  const allowed = addresses.filter((address) => !checkAddress(address, { loopback }));
  if (allowed.length > 0) return allowed.slice(0, MOST_TRIED);
  const why = addresses.map((address) => `${address} is ${checkAddress(address, { loopback })}`);
  throw new HopFailed("address_refused", why.join(", ") || "no addresses");
}

/** A name may have addresses of a family that the server does not listen on. */
async function openFirst(addresses: readonly string[], port: number, timing: Timing) {
  const failures: HopFailed[] = [];
  for (const address of addresses) {
    try {
      return await openTcp(address, port, timing);
    } catch (error) {
      if (!(error instanceof HopFailed)) throw error;
      failures.push(error);
    }
  }
  const [first] = failures;
  throw new HopFailed(first?.code ?? "tcp_failed", failures.map(({ message }) => message).join("; "));
}

function describe(
  certificate: DetailedPeerCertificate,
  { trusted, trust, protocol }: { trusted: boolean; trust: X509Certificate[]; protocol: string | null },
): EndpointReport["certificate"] {
  const notAfter = new Date(certificate.valid_to);
  return {
    trusted_by: !trusted ? null : isFrom(trust, certificate) ? "trust_bundle" : "system",
    issuer: nameOf(certificate.issuer?.CN),
    not_after: Number.isNaN(notAfter.getTime()) ? null : notAfter.toISOString(),
    protocol,
  };
}

/** Whether the chain holds one of the bundle's certificates. */
function isFrom(trust: readonly X509Certificate[], leaf: DetailedPeerCertificate): boolean {
  const bundle = new Set(trust.map(({ fingerprint256 }) => fingerprint256));
  const seen = new Set<string>();
  for (let at: DetailedPeerCertificate | undefined = leaf; at?.fingerprint256; at = at.issuerCertificate) {
    if (bundle.has(at.fingerprint256)) return true;
    // The root is its own issuer.
    if (seen.has(at.fingerprint256)) return false;
    seen.add(at.fingerprint256);
  }
  return false;
}

/** A certificate that names no node is refused, whatever is asked with it. */
function nodeIdIn(identity: string): string {
  const [leaf] = certificatesIn(identity);
  const [, named] = /URI:holdfast:\/\/node\/([0-9a-f-]{36})/.exec(leaf?.subjectAltName ?? "") ?? [];
  return named ?? NO_NODE;
}

function readCertificates(path: string): X509Certificate[] {
  return certificatesIn(readFileIfPresent(path) ?? "");
}

function certificatesIn(text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap((pem) => {
    try {
      return [new X509Certificate(pem)];
    } catch {
      return [];
    }
  });
}

function nameOf(name: string | string[] | undefined): string | null {
  const text = Array.isArray(name) ? name[0] : name;
  return text?.slice(0, 300) ?? null;
}
