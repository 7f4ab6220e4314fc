// Takes the hops of one endpoint in order and stops at the first that fails.

import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import tls, { type DetailedPeerCertificate } from "node:tls";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { readFileIfPresent } from "@holdfast/kit/files";
import type { z } from "zod";
import { checkAddress, saysLoopback } from "./check-address.ts";
import type contract from "./contract.ts";
import { HopFailed, openTcp, presentCertificate, resolveHost, shakeHands, type Timing } from "./hops.ts";

export type EndpointReport = z.input<typeof contract.result>["endpoints"][number];
type Hop = EndpointReport["hops"][number];

/** These know nodes by certificate, and must be the server this node was enrolled with. */
const nodeFacing = new Set(["node_api", "node_terminal"]);
const MOST_ADDRESSES = 16;
const NO_NODE = "00000000-0000-0000-0000-000000000000";
/** Of those that may be connected to, so that a long list does not take all the time there is. */
const MOST_TRIED = 4;

export type Way = { stateDir: string; profile: EnvironmentProfile; timing: Timing };

export async function probeEndpoint(name: string, { stateDir, profile, timing }: Way): Promise<EndpointReport> {
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
    const allowed = await hop("address", () => allowedOf(resolved, host));
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
        if (untrusted) throw new HopFailed("tls_untrusted", untrusted);
      });
      if (nodeFacing.has(name)) {
        await hop("mtls", async () => {
          const identity = readFileIfPresent(join(stateDir, "identity.pem"));
          if (!identity)
            throw new HopFailed("identity_missing", "identity.pem is not in the agent's state directory");
          const again = await openTcp(report.address ?? "", port, timing);
          await presentCertificate(again, { host, ca, timing, identity, nodeId: nodeIdIn(identity) });
        });
      }
    }
    report.ok = true;
  } catch (error) {
    if (!(error instanceof HopFailed)) throw error;
  }
  return report;
}

async function takeHop<T>(hops: Hop[], hop: Hop["hop"], take: () => T | Promise<T>): Promise<T> {
  const begun = performance.now();
  const elapsed = () => Math.round((performance.now() - begun) * 10) / 10;
  try {
    const value = await take();
    hops.push({ hop, ok: true, ms: elapsed(), code: null, detail: null });
    return value;
  } catch (error) {
    if (error instanceof HopFailed)
      hops.push({ hop, ok: false, ms: elapsed(), code: error.code, detail: error.message.slice(0, 300) });
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

export function allowedOf(addresses: readonly string[], host: string): string[] {
  const loopback = saysLoopback(host);
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
