// `up.json`: who runs on this data directory, for `holdfast down`, `holdfast status` and for the
// next start after a kill -9. A bare pid is never trusted: each comes with the time its process
// began and the boot it belongs to.

import { readFileSync } from "node:fs";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { identify, isAlive, type ProcessIdentity } from "@holdfast/kit/processes";

export type RecordedProcess = { pid: number; start_ticks: string };

export type UpFile = {
  boot_id: string;
  supervisor: RecordedProcess;
  started_at: string;
  /** False until every process has reported that it is ready. */
  ready: boolean;
  /** Where this machine reaches them; null until they listen. */
  api_url: string | null;
  gateway_url: string | null;
  node_api_url: string | null;
  api_internal_url: string | null;
  node_terminal_url: string | null;
  gateway_internal_url: string | null;
  /** Holds the token that dispatches steps; null: the token is a setting's. */
  dispatch_token_file: string | null;
  /** This machine as a node; null when `up` runs no agent. */
  agent: AgentRecord | null;
  /** The listeners' certificate, when they speak TLS: what commands on this machine trust. */
  tls_cert_file: string | null;
  database: { embedded: boolean; version: string | null };
  children: Record<string, RecordedProcess>;
};

/** `url` is the agent's own listener; `reason` says why there is no agent, or none yet. */
export type AgentRecord = {
  node_id: string | null;
  node_name: string | null;
  state_dir: string;
  url: string | null;
  reason: string | null;
};

export function readUpFile(path: string): UpFile | undefined {
  const text = readFileIfPresent(path);
  return text === undefined ? undefined : (JSON.parse(text) as UpFile);
}

/** Writes it for this process, and keeps it in step with what runs. */
export function keepUpFile(path: string, options: { embedded: boolean; agent: AgentRecord | null }) {
  const self = recordOf(process.pid);
  if (self === undefined) throw new Error("/proc does not show this process");
  let content: UpFile = {
    boot_id: bootId(),
    supervisor: self,
    started_at: new Date().toISOString(),
    ready: false,
    api_url: null,
    gateway_url: null,
    node_api_url: null,
    api_internal_url: null,
    node_terminal_url: null,
    gateway_internal_url: null,
    dispatch_token_file: null,
    agent: options.agent,
    tls_cert_file: null,
    database: { embedded: options.embedded, version: null },
    children: {},
  };
  const change = (changes: Partial<UpFile>) => {
    content = { ...content, ...changes };
    writeFileDurably(path, `${JSON.stringify(content, null, 2)}\n`, 0o600);
  };
  change({});
  return {
    change,
    childStarted: (name: string, pid: number) => {
      const child = recordOf(pid);
      if (child) change({ children: { ...content.children, [name]: child } });
    },
  };
}

export function removeUpFile(path: string): void {
  removeIfPresent(path);
}

/** Those of the recorded children that still run. */
export function livingChildren(file: UpFile): { name: string; process: ProcessIdentity }[] {
  if (file.boot_id !== bootId()) return [];
  return Object.entries(file.children)
    .map(([name, recorded]) => ({ name, process: identityOf(recorded) }))
    .filter(({ process }) => isAlive(process));
}

export function livingSupervisor(file: UpFile): ProcessIdentity | undefined {
  const supervisor = identityOf(file.supervisor);
  return file.boot_id === bootId() && isAlive(supervisor) ? supervisor : undefined;
}

function identityOf(recorded: RecordedProcess): ProcessIdentity {
  return { pid: recorded.pid, startTicks: recorded.start_ticks };
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

function recordOf(pid: number): RecordedProcess | undefined {
  const found = identify(pid);
  return found && { pid, start_ticks: found.startTicks };
}
