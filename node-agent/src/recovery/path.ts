// Where a node gets a new identity, and how it knows the server there. Both are pinned when it joins, apart from the
// address and the roots in daily use: recovery must work when those are stale, overwritten or wrong.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { type AgentFile, nodeApiUrl, writeAgentFile } from "../identity/agent-file.ts";
import { explainWriteError, HostProblem, type StateFiles } from "../identity/state-directory.ts";
import { isSecure } from "../identity/trials.ts";
import { digestOf, readTrust } from "../identity/trust-file.ts";

export type RecoveryPath = {
  /** In the order in which they are tried. */
  urls: readonly string[];
  /** A server whose certificate does not chain to one of these gets no token. */
  roots: readonly string[];
  lookup?: LookupFunction;
};

export type RecoverySettings = { apiUrl?: string | undefined; caPath?: string | undefined };

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;

/** For a node that joins. A joining machine may use plain HTTP on loopback, a recovering one never does. */
export function recoveryUrlAtJoin(agent: Omit<AgentFile, "recovery_api_url">): string {
  const published = agent.profile.endpoints["recovery"];
  return published ?? (isSecure(agent.api_url) ? agent.api_url : nodeApiUrl(agent, undefined));
}

/**
 * The pinned address, then one that was published since, then the one in daily use and the one where the node joined. All
 * of them must prove themselves by the same roots, so trying another one reveals nothing. An address that is
 * configured on the host is the only one.
 */
export function recoveryUrls(agent: AgentFile, present: string, configured: string | undefined): string[] {
  if (configured !== undefined) return [configured];
  const known = [agent.recovery_api_url, agent.profile.endpoints["recovery"], present, agent.api_url];
  return [...new Set(known.filter((url) => url !== undefined))].filter(isSecure);
}

/** `inForce`: used only while there is no file of pinned roots. Throws a HostProblem when there are none at all. */
export function recoveryRoots(
  files: StateFiles,
  inForce: () => readonly string[],
  caPath: string | undefined,
): readonly string[] {
  const path = caPath ?? files.recoveryRoots;
  try {
    const found = rootsIn(caPath === undefined ? (readFileIfPresent(path) ?? "") : readFileSync(path, "utf8"));
    if (found.length > 0) return found;
  } catch (error) {
    if (caPath !== undefined) throw unusable(`${path} cannot be read: ${(error as Error).message}.`);
  }
  if (caPath !== undefined) throw unusable(`${path} holds no CA certificate.`);
  return inForce();
}

/** Replaces what was pinned before. */
export function pinRecoveryRoots(files: StateFiles, roots: readonly string[]): void {
  try {
    writeFileDurably(files.recoveryRoots, roots.map((root) => `${root.trim()}\n`).join(""), 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

/** Roots of a signed bundle that is in force now. The pinned ones stay. */
export function addRecoveryRoots(files: StateFiles, roots: readonly string[]): void {
  const pinned = rootsIn(readFileIfPresent(files.recoveryRoots) ?? "");
  const known = new Set(pinned.map(digestOf));
  const fresh = roots.filter((root) => !known.has(digestOf(root)));
  if (fresh.length > 0) pinRecoveryRoots(files, [...pinned, ...fresh]);
}

/** Of a node that joined before recovery existed: what is in force becomes what is pinned. Returns its file as it is then. */
export function pinIfMissing(files: StateFiles, agent: AgentFile): AgentFile {
  if (readFileIfPresent(files.recoveryRoots) === undefined) {
    pinRecoveryRoots(files, readTrust(files, agent.profile.ca_sha256));
  }
  if (agent.recovery_api_url !== undefined) return agent;
  const pinned = { ...agent, recovery_api_url: recoveryUrlAtJoin(agent) };
  writeAgentFile(files, pinned);
  return pinned;
}

function rootsIn(text: string): string[] {
  return (text.match(certificate) ?? []).filter(isRoot);
}

function isRoot(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}

function unusable(what: string): HostProblem {
  return new HostProblem("trust_bundle_invalid", `${what} It is set by HOLDFAST_RECOVERY_CA_BUNDLE_PATH.`);
}
