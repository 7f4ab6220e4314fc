// Problems that the agent can detect by itself, from its files, its clock and its disks. `findings`
// decides from plain facts; `selfCheck` collects them and never throws.

import { accessSync, constants, statfsSync } from "node:fs";
import { certificateStage } from "@holdfast/contracts/node/certificate-stage";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { isErrno } from "@holdfast/kit/files";
import { type AgentFile, readAgentFile } from "../identity/agent-file.ts";
import { type Identity, readIdentity } from "../identity/identity-file.ts";
import { HostProblem, stateFiles } from "../identity/state-directory.ts";
import { readTrust } from "../identity/trust-file.ts";

export type Finding = { reason: DiagnosticReason; detail: string };

/** The content of a file, or why it cannot be used. */
export type Found<T> = { found: T } | { problem: Finding };

export type SelfCheckFacts = {
  now: number;
  agent: Found<Pick<AgentFile, "node_id" | "profile">>;
  identity: Found<{ nodeId: string; certificate: { notBefore: number; notAfter: number } }>;
  trust: Found<unknown>;
  /** The address in use; undefined: not connected, nothing to compare. */
  apiUrl: string | undefined;
  /** The server's clock minus this host's, as last measured; undefined before the first response. */
  clockSkewSeconds: number | undefined;
  /** The server's best response time, in milliseconds; undefined while it is not known. */
  roundTripMs?: number | undefined;
  stateDir: "writable" | "full" | "read_only" | "missing";
  /** Why diagnostics.log cannot be read or written. */
  diagnosticsProblem?: string | undefined;
  /** Of the root file system; undefined where it is not known. */
  rootUsedPercent: number | undefined;
  diskPressurePercent: number;
};

export type CheckOptions = Pick<
  SelfCheckFacts,
  "now" | "clockSkewSeconds" | "roundTripMs" | "diskPressurePercent" | "diagnosticsProblem"
> & {
  stateDir: string;
  apiUrl?: string;
  /** In force, and not in the files yet: the disk was full when it was recovered. */
  unsaved?: Identity | undefined;
};

/** The agent itself needs no more disk space; tasks and a renewed certificate do. */
const FULL_BELOW_BYTES = 1024 * 1024;
/** Twice the longest round trip on earth. The quickest of several counts, so a busy moment is not a slow link. */
const SLOW_FROM_MS = 500;

/** Reads the state directory and the disks, then decides (`findings`). */
export function selfCheck({ stateDir, apiUrl, unsaved, ...known }: CheckOptions): Finding[] {
  const state = { ...readState(stateDir), ...(unsaved ? inMemory(unsaved) : {}) };
  return findings({ ...known, ...state, apiUrl, rootUsedPercent: rootUsedPercent() });
}

/** Those that explain others come first. */
export function findings(facts: SelfCheckFacts): Finding[] {
  return [
    ...clock(facts),
    ...stateDirectory(facts),
    ...diagnostics(facts),
    ...certificate(facts),
    ...trust(facts),
    ...profile(facts),
    ...disk(facts),
    ...link(facts),
  ];
}

function clock({ clockSkewSeconds, identity, now }: SelfCheckFacts): Finding[] {
  if (clockSkewSeconds !== undefined && Math.abs(clockSkewSeconds) > CLOCK_TOLERANCE_SECONDS) {
    const side = clockSkewSeconds > 0 ? "behind" : "ahead of";
    const detail = `this host's clock is ${span(clockSkewSeconds * 1000)} ${side} the server's`;
    return [{ reason: "clock_skew", detail }];
  }
  const notBefore = "found" in identity ? identity.found.certificate.notBefore : now;
  if (clockSkewSeconds === undefined && notBefore - now > CLOCK_TOLERANCE_SECONDS * 1000) {
    const detail = `the certificate is valid only from ${iso(notBefore)}, and this host's clock says ${iso(now)}`;
    return [{ reason: "clock_skew", detail }];
  }
  return [];
}

function stateDirectory({ stateDir }: SelfCheckFacts): Finding[] {
  switch (stateDir) {
    case "writable":
      return [];
    case "full":
      return [{ reason: "disk_full", detail: "less than 1 MiB is free in the agent's state directory" }];
    case "read_only":
      return [{ reason: "state_dir_read_only", detail: "the state directory cannot be written" }];
    case "missing":
      return [{ reason: "identity_key_missing", detail: "there is no state directory" }];
    default:
      return exhaustive(stateDir);
  }
}

/** A problem of the directory itself explains the others. */
function diagnostics({ stateDir, diagnosticsProblem }: SelfCheckFacts): Finding[] {
  if (stateDir !== "writable" || diagnosticsProblem === undefined) return [];
  return [{ reason: "diagnostics_unwritable", detail: diagnosticsProblem }];
}

/** By the server's clock if it is known, so that a wrong clock here is not mistaken for expiry. */
function certificate({ identity, agent, now, clockSkewSeconds, stateDir }: SelfCheckFacts): Finding[] {
  if (stateDir === "missing") return [];
  const found: Finding[] = "problem" in agent ? [agent.problem] : [];
  if ("problem" in identity) return [...found, identity.problem];
  const { nodeId, certificate } = identity.found;
  if ("found" in agent && agent.found.node_id !== nodeId) {
    const detail = `the certificate is of the node ${nodeId}, and this agent was enrolled as ${agent.found.node_id}`;
    found.push({ reason: "identity_key_missing", detail });
  }
  const time = now + (clockSkewSeconds ?? 0) * 1000;
  return [...found, ...lateness(certificate, time)];
}

function lateness(certificate: { notBefore: number; notAfter: number }, time: number): Finding[] {
  const until = iso(certificate.notAfter);
  const apart = span(certificate.notAfter - time);
  const stage = certificateStage(certificate, time);
  switch (stage) {
    case "current":
      return [];
    case "renewal_overdue":
      return [{ reason: "cert_renewal_overdue", detail: `it expires at ${until}, ${apart} from now` }];
    case "expired":
      return [{ reason: "cert_expired", detail: `it expired at ${until}, ${apart} ago` }];
    default:
      return exhaustive(stage);
  }
}

function trust({ trust, stateDir }: SelfCheckFacts): Finding[] {
  return "problem" in trust && stateDir !== "missing" ? [trust.problem] : [];
}

function profile({ agent, apiUrl }: SelfCheckFacts): Finding[] {
  if ("problem" in agent || apiUrl === undefined) return [];
  const { name, version, endpoints } = agent.found.profile;
  const published = endpoints["node_api"];
  if (published === undefined || originOf(published) === originOf(apiUrl)) return [];
  const detail = `in use is ${originOf(apiUrl)}; the profile ${name}, version ${version}, says ${originOf(published)}`;
  return [{ reason: "endpoint_profile_drift", detail }];
}

function disk({ rootUsedPercent, diskPressurePercent }: SelfCheckFacts): Finding[] {
  if (rootUsedPercent === undefined || rootUsedPercent < diskPressurePercent) return [];
  const detail = `${Math.floor(rootUsedPercent)} % of the root file system are used, the limit is ${diskPressurePercent} %`;
  return [{ reason: "node_observability_disk_pressure", detail }];
}

function link({ roundTripMs }: SelfCheckFacts): Finding[] {
  if (roundTripMs === undefined || roundTripMs < SLOW_FROM_MS) return [];
  const tenths = Math.round(roundTripMs / 100) / 10;
  return [{ reason: "link_slow", detail: `the last heartbeats took ${tenths} s or longer to be answered` }];
}

type StateFacts = Pick<SelfCheckFacts, "identity" | "trust" | "stateDir"> & { agent: Found<AgentFile> };

/** The files are those from before, which are not in force any more. */
export function inMemory(identity: Identity): Pick<StateFacts, "identity" | "trust"> {
  return { identity: { found: identity }, trust: { found: undefined } };
}

/** The content of the state directory; also read by `holdfast agent diagnose`. */
export function readState(directory: string): StateFacts {
  const files = stateFiles(directory);
  const agent = attempt(() => {
    const found = readAgentFile(files);
    if (found) return found;
    throw new HostProblem("identity_key_missing", `${files.agent} is not there: this machine is not a node yet.`);
  });
  const expected = "found" in agent ? (agent.found.profile.ca_sha256 ?? []) : [];
  return {
    agent,
    identity: attempt(() => readIdentity(files)),
    trust: attempt(() => readTrust(files, expected)),
    stateDir: stateOf(directory),
  };
}

function attempt<T>(read: () => T): Found<T> {
  try {
    return { found: read() };
  } catch (error) {
    const reason = error instanceof HostProblem ? error.reason : "identity_key_missing";
    return { problem: { reason, detail: (error as Error).message } };
  }
}

function stateOf(directory: string): SelfCheckFacts["stateDir"] {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    const { bsize, bavail, bfree } = statfsSync(directory);
    const free = bsize * (process.geteuid?.() === 0 ? bfree : bavail);
    return free < FULL_BELOW_BYTES ? "full" : "writable";
  } catch (error) {
    return isErrno(error, "ENOENT") ? "missing" : "read_only";
  }
}

/** As `df` counts: what is reserved for root is neither used nor free. */
export function rootUsedPercent(): number | undefined {
  try {
    const { blocks, bfree, bavail } = statfsSync("/");
    const used = blocks - bfree;
    return used + bavail === 0 ? undefined : (100 * used) / (used + bavail);
  } catch {
    return undefined;
  }
}

export function originOf(url: string): string {
  return URL.parse(url)?.origin ?? url;
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+/, "");
}

/** Roughly, in the largest unit that gives at least two. */
export function span(ms: number): string {
  const units: [number, string][] = [
    [86_400_000, "days"],
    [3_600_000, "hours"],
    [60_000, "minutes"],
  ];
  const length = Math.abs(ms);
  const [size, name] = units.find(([size]) => length >= 2 * size) ?? [1000, "seconds"];
  return `${Math.floor(length / size)} ${name}`;
}
