// `holdfast agent diagnose`: the agent's state for a person on the host. Needs neither the server nor
// a running agent, only the state directory; what cannot be read there is reported too. `explain`
// renders plain data as text, `lookAt` collects it.

import { accessSync, constants, existsSync } from "node:fs";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { type PresentedReason, presentReason } from "@holdfast/contracts/reasons/catalogue";
import { type Place, placeOf, placeText } from "@holdfast/contracts/reasons/hops";
import { nodeReason, ownerGroupOf, standsUntilAnswered } from "@holdfast/contracts/reasons/node";
import { type NodeOwner, nodeOwnerWords } from "@holdfast/contracts/reasons/owners";
import { isErrno } from "@holdfast/kit/files";
import { isAlive } from "@holdfast/kit/processes";
import { redact } from "@holdfast/kit/redact";
import { nodeApiUrl } from "../identity/agent-file.ts";
import { stateFiles } from "../identity/state-directory.ts";
import { runningAgent } from "../journal/lock.ts";
import { type JournalSummary, readJournal } from "../journal/summary.ts";
import { findSockets, type GatewayNote, readGatewayNote } from "../terminals/directory.ts";
import { type BundlePicture, bundleText, lookAtBundle } from "./bundle.ts";
import { CONNECTED, NO_LONGER_FOUND } from "./connected.ts";
import { lookAtRecovery, type RecoveryPicture, recoveryText } from "./recovery.ts";
import { toDiagnosticRecord } from "./ring.ts";
import { readRing, ringPath } from "./ring-file.ts";
import { type Finding, findings, inMemory, readState, rootUsedPercent, span } from "./self-checks.ts";

/** A finding of just now, or a record, whose reason a newer agent may have written. */
type Found = Omit<Finding, "reason"> & { reason: string };

/** The hop to the server, null for a reason of a newer agent; and the name of its alert signal. */
type Explained = Found &
  Place &
  PresentedReason & {
    signal: string | null;
    message: string;
    owner: NodeOwner;
    next_step: string;
    /** Of the record with this reason; null: found just now, and not recorded. */
    correlation_id: string | null;
  };

/** Also what `--json` prints. */
export type AgentPicture = {
  state_dir: string;
  /** `unreadable`: this user has no access to the directory. */
  state: "enrolled" | "not_enrolled" | "unreadable";
  /** The pid of the agent that runs on this directory. */
  running_pid: number | null;
  /** How it is connected to the server, while it runs and no request has failed since. */
  connection: { detail: string; since: string } | null;
  node: {
    id: string;
    name: string;
    org_id: string;
    api_url: string;
    /** Where people reach the server, as it published it. */
    public_url: string | null;
    profile: string;
  } | null;
  certificate: { not_before: string; not_after: string } | null;
  recovery: RecoveryPicture | null;
  /** The last recovery bundle that was applied here. */
  bundle: BundlePicture | null;
  journal: {
    unsent_results: number;
    unfinished: { task_id: string; type: string }[];
    problem: string | null;
  } | null;
  /** `gateway`: the result of the last attempt to connect; null before the first. */
  terminals: { open: { session_id: string; since: string; pid: number }[]; gateway: GatewayNote | null };
  findings: Explained[];
  /** The last failure of the connection to the server, unless a request has succeeded since. */
  last_problem: Explained | null;
  /** Newest first. */
  records: DiagnosticRecord[];
  records_problem: string | null;
};

export type LookOptions = { now: number; diskPressurePercent: number; records?: number };

/** Never throws. */
export function lookAt(stateDir: string, { now, diskPressurePercent, records = 10 }: LookOptions): AgentPicture {
  const nothing: AgentPicture = {
    state_dir: stateDir,
    state: "unreadable",
    running_pid: null,
    connection: null,
    node: null,
    certificate: null,
    recovery: null,
    bundle: null,
    journal: null,
    terminals: { open: [], gateway: null },
    findings: [],
    last_problem: null,
    records: [],
    records_problem: null,
  };
  if (!mayEnter(stateDir)) return nothing;
  const state = readState(stateDir);
  const { agent } = state;
  const files = stateFiles(stateDir);
  const recovery = "found" in agent ? lookAtRecovery(files, agent.found, now) : undefined;
  // An identity that could not be written to its file yet is in force.
  const inForce = recovery?.unsaved ? { ...state, ...inMemory(recovery.unsaved) } : state;
  const { identity } = inForce;
  const history = readHistory(stateDir, now);
  // A host with a bootstrap token has a history before it is a node; only a node has reached the server.
  const neverJoined = !existsSync(files.agent) && !existsSync(files.identity) && !history.reachedServer;
  const measured = { now, diskPressurePercent, rootUsedPercent: rootUsedPercent() };
  const unknown = { apiUrl: undefined, clockSkewSeconds: undefined };
  const running = pidOf(stateDir);
  const diagnosticsProblem = history.problem ?? undefined;
  const found: Found[] = neverJoined ? [] : findings({ ...inForce, ...measured, ...unknown, diagnosticsProblem });
  if (!neverJoined && running === null && !found.some(hidesTheLock)) found.push(notRunning);
  const journal = journalOf(stateDir);
  if (journal && journal.unsent_results > 0 && history.undelivered) found.push(history.undelivered);
  return {
    ...nothing,
    state: neverJoined ? "not_enrolled" : "enrolled",
    running_pid: running,
    connection: running !== null && history.latest?.reason === "process_alive" ? history.connected : null,
    node:
      "found" in agent
        ? {
            id: agent.found.node_id,
            name: agent.found.node_name,
            org_id: agent.found.org_id,
            api_url: nodeApiUrl(agent.found, undefined),
            public_url: agent.found.profile.endpoints["public"] ?? null,
            profile: `${agent.found.profile.name} version ${agent.found.profile.version}`,
          }
        : null,
    certificate:
      "found" in identity
        ? {
            not_before: new Date(identity.found.certificate.notBefore).toISOString(),
            not_after: new Date(identity.found.certificate.notAfter).toISOString(),
          }
        : null,
    recovery: recovery?.picture ?? null,
    bundle: lookAtBundle(files),
    journal,
    terminals: terminalsOf(stateDir),
    findings: found.map((one) => explained({ correlation_id: history.idOf(one.reason), ...one })),
    last_problem: history.latest && history.latest.reason !== "process_alive" ? explained(history.latest) : null,
    records: history.records.slice(-records).reverse(),
    records_problem: history.problem,
  };
}

/** The state as lines for a terminal. */
export function explain(picture: AgentPicture, now: number): string[] {
  const { state, state_dir, findings, last_problem } = picture;
  if (state === "unreadable") {
    return [
      `This user may not look into ${state_dir}, where the agent keeps its state.`,
      "Run it as the agent's user; usually that is root: sudo holdfast agent diagnose",
    ];
  }
  if (state === "not_enrolled" && picture.records.length > 0) {
    return [
      `This machine is not a node yet; what the agent tried is in ${state_dir}.`,
      ...bundleLines(picture),
      "",
      ...(last_problem ? [...problemLines([last_problem], picture.node), ""] : []),
      ...historyLines(picture),
    ];
  }
  if (state === "not_enrolled") {
    return [
      `This machine is not a node: there is nothing of an agent in ${state_dir}.`,
      ...bundleLines(picture),
      "To make it one, run on the server: holdfast node token create",
      "It prints the command to run here. If the agent keeps its state elsewhere, set HOLDFAST_AGENT_STATE_DIR.",
    ];
  }
  const problems = [...findings, ...(last_problem && !findings.some(sameAs(last_problem)) ? [last_problem] : [])];
  return [...facts(picture, now), "", ...problemLines(problems, picture.node), "", ...historyLines(picture)];
}

function bundleLines({ bundle }: AgentPicture): string[] {
  return bundle ? [`Bundle: ${bundleText(bundle)}`] : [];
}

/** Commands name the node, so that they can be pasted. */
function problemLines(problems: readonly Explained[], node: AgentPicture["node"]): string[] {
  return [
    problems.length === 0 ? "Nothing is wrong as far as this host can tell." : "What is wrong:",
    ...problems.flatMap(
      ({ title, reason, signal, message, detail, owner, next_step, runbook, correlation_id, ...place }) => [
        `  ${title} (${reason}): ${message}`,
        ...(place.hop ? [`    hop    ${placeText(place)}, signal ${signal}`] : []),
        `    seen   ${detail}`,
        `    who    ${nodeOwnerWords[owner].person}`,
        `    next   ${adviceFor(node?.id ?? "<id>", next_step)}`,
        ...(runbook && node?.public_url ? [`    runbook ${node.public_url}${runbook}`] : []),
        ...(correlation_id ? [`    id     ${correlation_id}`] : []),
      ],
    ),
  ];
}

function historyLines({ records, records_problem }: AgentPicture): string[] {
  return [
    ...(records_problem ? [`The history cannot be read: ${records_problem}`] : []),
    ...(records.length > 0 ? ["What happened last, newest first:"] : []),
    ...records.map(({ at, reason, detail }) => `  ${at.replace(/\.\d+/, "")}  ${reason}  ${detail}`),
  ];
}

function facts(picture: AgentPicture, now: number): string[] {
  const { node, running_pid, connection, certificate, journal, bundle } = picture;
  const lines: [string, string][] = [
    ["State", picture.state_dir],
    ["Node", node ? `${node.name} (${node.id})` : "unknown: agent.json cannot be used"],
    ...(node
      ? ([
          ["Server", node.api_url],
          ["Profile", node.profile],
        ] as [string, string][])
      : []),
    ...(bundle ? ([["Bundle", bundleText(bundle)]] as [string, string][]) : []),
    ["Process", running_pid === null ? "not running" : `running, pid ${running_pid}`],
    ...(connection
      ? ([["Connection", `${connection.detail}, since ${connection.since}`]] as [string, string][])
      : []),
    ["Certificate", certificate ? validity(certificate.not_after, now) : "none that can be used"],
    ["Recovery", picture.recovery ? recoveryText(picture.recovery, now) : "unknown"],
    ["Journal", journal ? journalText(journal, running_pid !== null) : "none yet"],
    ["Terminals", terminalsText(picture.terminals, now)],
  ];
  return lines.map(([name, value]) => `${name.padEnd(13)}${value}`);
}

function validity(notAfter: string, now: number): string {
  const left = Date.parse(notAfter) - now;
  return left > 0
    ? `valid until ${notAfter}, ${span(left)} from now`
    : `expired at ${notAfter}, ${span(left)} ago`;
}

function journalText(
  { unsent_results, unfinished, problem }: NonNullable<AgentPicture["journal"]>,
  runs: boolean,
): string {
  if (problem) return problem;
  const results =
    unsent_results === 0
      ? "no result waits for delivery"
      : unsent_results === 1
        ? "1 result waits for delivery"
        : `${unsent_results} results wait for delivery`;
  if (unfinished.length === 0) return results;
  const tasks = unfinished.map(({ type, task_id }) => `${type} (${task_id})`).join(", ");
  return `${results}; ${runs ? "running now" : "cut short, to be reported as interrupted"}: ${tasks}`;
}

function terminalsText({ open, gateway }: AgentPicture["terminals"], now: number): string {
  const shells =
    open.length === 0
      ? "none open"
      : `${open.length} open: ${open.map(({ session_id, since }) => `${session_id} for ${span(now - Date.parse(since))}`).join(", ")}`;
  if (!gateway) return `${shells}; the terminal gateway was not dialled yet`;
  const { url, at, reached, detail } = gateway;
  return reached
    ? `${shells}; the terminal gateway ${url} was reached at the last try`
    : `${shells}; the terminal gateway ${url} cannot be reached since ${at}: ${detail}`;
}

const notRunning: Finding = { reason: "agent_down", detail: "no process holds the agent's state directory" };
/** An agent that cannot open its journal cannot lock the directory either: whether it runs is not known. */
const hidesTheLock = ({ reason }: Found) => reason === "disk_full" || reason === "state_dir_read_only";

type Recorded = Found & { correlation_id?: string | null };

const sameAs = (one: Found) => (other: Found) => other.reason === one.reason;

function explained({ reason, detail, correlation_id = null }: Recorded): Explained {
  // A newer agent may have written a reason that this one does not know.
  const entry = nodeReason(reason) ?? {
    at: null,
    signal: null,
    message: "Unknown to this version.",
    nextStep: "Update holdfast on this host.",
  };
  const { at, signal, message, nextStep } = entry;
  const words = { message, owner: ownerGroupOf(reason), next_step: nextStep };
  return {
    ...{ reason, detail: redact(detail), ...presentReason(reason), ...placeOf(at), signal, ...words },
    correlation_id,
  };
}

type History = {
  records: DiagnosticRecord[];
  latest: DiagnosticRecord | undefined;
  reachedServer: boolean;
  /** The last time that a connection was made; null: never. */
  connected: AgentPicture["connection"];
  /** Why results wait, if any do. */
  undelivered: DiagnosticRecord | undefined;
  /** Correlation id of the newest record with this reason. */
  idOf(reason: string): string | null;
  problem: string | null;
};

/** `one` precedes `other` in the file. A record written by a clock that was ahead is not later than its successors. */
function isLater(one: { last_at: string }, other: { last_at: string }, now: number): boolean {
  return Date.parse(one.last_at) <= now && one.last_at > other.last_at;
}

const reasonsEndedBy = ({ detail }: { detail: string }) => detail.slice(NO_LONGER_FOUND.length).split(", ");

function readHistory(directory: string, now: number): History {
  try {
    const kept = readRing(ringPath(directory));
    const ends = kept.filter(({ detail }) => detail.startsWith(NO_LONGER_FOUND));
    const isOver = (one: (typeof kept)[number]) =>
      ends.some(
        (end) =>
          reasonsEndedBy(end).includes(one.reason) &&
          kept.indexOf(end) > kept.indexOf(one) &&
          !isLater(one, end, now),
      );
    // Repetitions are counted in their record, so the newest record is not always the latest event.
    const latest = kept
      .filter((one) => !ends.includes(one) && !isOver(one))
      .filter(({ reason }) => reason === "process_alive" || standsUntilAnswered(reason))
      .reduce<(typeof kept)[number] | undefined>(
        (one, other) => (one && isLater(one, other, now) ? one : other),
        undefined,
      );
    const reachedServer = kept.some(({ reason }) => reason === "process_alive");
    const connected = kept.findLast(({ detail }) => detail.startsWith(CONNECTED));
    const undelivered = kept.findLast(({ reason }) => reason === "task_result_failed");
    return {
      records: kept.map(toDiagnosticRecord),
      latest: latest && toDiagnosticRecord(latest),
      reachedServer,
      connected: connected ? { detail: connected.detail, since: connected.last_at } : null,
      undelivered: undelivered && toDiagnosticRecord(undelivered),
      idOf: (reason) => kept.findLast((one) => one.reason === reason)?.correlation_id ?? null,
      problem: null,
    };
  } catch (error) {
    const problem = isErrno(error, "ENOENT") ? null : (error as Error).message;
    const idOf = () => null;
    const none = { latest: undefined, connected: null, undelivered: undefined };
    return { records: [], reachedServer: false, ...none, idOf, problem };
  }
}

function journalOf(directory: string): AgentPicture["journal"] {
  let summary: JournalSummary | undefined;
  try {
    summary = readJournal(directory);
  } catch (error) {
    return { unsent_results: 0, unfinished: [], problem: `it cannot be read: ${(error as Error).message}` };
  }
  if (!summary) return null;
  const unfinished = summary.started.map(({ task_id, type }) => ({ task_id, type }));
  return { unsent_results: summary.unsent.length, unfinished, problem: summary.damage ?? null };
}

/** While its holder runs. */
function terminalsOf(directory: string): AgentPicture["terminals"] {
  const open = findSockets(directory).flatMap((one) =>
    one.kind === "shell" && isAlive(one.holder)
      ? [{ session_id: one.sessionId, since: new Date(one.since).toISOString(), pid: one.holder.pid }]
      : [],
  );
  return { open, gateway: readGatewayNote(directory) ?? null };
}

function pidOf(directory: string): number | null {
  try {
    return runningAgent(directory) ?? null;
  } catch {
    return null;
  }
}

function mayEnter(directory: string): boolean {
  try {
    accessSync(directory, constants.R_OK | constants.X_OK);
    return true;
  } catch (error) {
    return !isErrno(error, "EACCES");
  }
}
