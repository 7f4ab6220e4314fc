// What happens in a scenario: something breaks, people see it, it is repaired, the user's request succeeds. Everything is
// gathered from what people have: the command line, the public API, `holdfast agent diagnose` on the host, and the
// logs. Nothing looks into the database. Whether it is right is decided elsewhere (`judge.ts`).

import { randomUUID } from "node:crypto";
import { getNode, listNodeDiagnostics, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { placeOf } from "@holdfast/contracts/reasons/hops";
import { nodeReason, ownerGroupOf, unknownReason } from "@holdfast/contracts/reasons/node";
import type { Evidence, Look, Observer, Retry, Sighting } from "./evidence.ts";
import { forbiddenOf, traceFor } from "./expectations.ts";
import type { Fault } from "./faults/fault.ts";
import { type Expected, lookAtFault, lookAtHealth } from "./judge.ts";
import type { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/node.ts";
import { lookUntil } from "./look.ts";
import { findById } from "./trace.ts";
import { PATIENCE_SECONDS, until, within } from "./until.ts";

type Judged = Pick<
  Sighting,
  "hop" | "hop_detail" | "signal" | "owner" | "message" | "next_step" | "correlation_id"
>;

/** Title, severity and whatever else comes from the catalogue of reasons have a test of their own. */
function judgedOf(shown: Judged): Judged {
  const { hop, hop_detail, signal, owner, message, next_step, correlation_id } = shown;
  return { hop, hop_detail, signal, owner, message, next_step, correlation_id };
}

export type TaskOptions = {
  node?: LabNode;
  type?: string;
  params?: Record<string, unknown>;
  idempotencyKey?: string;
};

type Seen = Omit<Sighting, "found" | "seconds" | "id_seconds">;

export type Story = {
  lab: Lab;
  breaks(fault: Fault): Promise<void>;
  /** Looks once more, then repairs everything that was broken. */
  repairs(): Promise<void>;
  /** A no-op, unless another type is named, as a producer gives it to the node. */
  gives(options?: TaskOptions): Promise<Task>;
  reads(task: Task): Promise<Task>;
  /** Waits until the task is done; throws when it failed. */
  succeeds(task: Task): Promise<Task>;
  /** A user runs a task from the command line, and is refused. */
  userIsRefused(options?: { type?: string; expiresSeconds?: number }): Promise<void>;
  /** `holdfast agent diagnose` on the host explains it. */
  hostSees(code: string): Promise<void>;
  /** The node's page says so. */
  dashboardSees(code: string): Promise<void>;
  /** The node's page no longer says so. */
  dashboardClears(code: string): Promise<void>;
  /** The agent has delivered it since the fault; only such a record, if one is looked for. */
  historyHas(code: string, wanted?: (record: DiagnosticRecord) => boolean): Promise<DiagnosticRecord>;
  /** The user's request again, and the look from before the repair. */
  recovers(): Promise<void>;
  notes(text: string): void;
};

export type StoryRun = {
  story: Story;
  notes: string[];
  /** What was gathered so far; undefined: the story did not come to its end. */
  evidence(): Promise<Evidence | undefined>;
  /** Repairs what is still broken. */
  repairs(): Promise<void>;
};

/** How long a user's task may wait for a node that does not take it: the shortest there is. */
const EXPIRES_SECONDS = 5;
/** And for one that takes and refuses it, which does so at once if the machine lets it. */
export const ANSWERED_SECONDS = 60;
const silences: ReadonlySet<string> = new Set(["heartbeat_stale", "connection_lost"]);

export function startStory(lab: Lab, expected: Expected): StoryRun {
  const { operator } = lab.control;
  const params = { node_id: lab.node.id };
  const faults: Fault[] = [];
  const notes: string[] = [];
  const seen: Sighting[] = [];
  const began = Date.now();
  let brokenAt = 0;
  let repairedAt: number | undefined;
  let before: Look | undefined;
  let after: Look | undefined;
  let retry: Retry | undefined;

  const said: string[] = [];
  const onAttention = (attention: NodeDetail["attention"]) => said.push(...codesIn(attention));
  const secondsSince = (from: number, to = Date.now()) => Math.round((to - from) / 100) / 10;
  const see = (sighting: Seen, at = Date.now()) => {
    const found = { audit: null, delivered: null, server_log: null, host_log: null };
    seen.push({ ...sighting, seconds: secondsSince(brokenAt, at), id_seconds: null, found });
  };
  const trace = async (one: Sighting) => {
    const wanted = expected.sightings.find(({ by, code }) => by === one.by && code === one.code) ?? one;
    if (one.correlation_id === null || one.found.audit !== null) return;
    one.found = await findById(lab, one.correlation_id, wanted);
    if (traceFor(wanted).ofTheFault) one.id_seconds = secondsSince(brokenAt, madeAt(one.correlation_id));
  };
  const repairs = async () => {
    // The last first, and each once, whatever becomes of the others.
    for (let fault = faults.pop(); fault !== undefined; fault = faults.pop()) await fault.repair();
  };
  const ended = (task: Task) =>
    until(`the task ${task.id} ends`, PATIENCE_SECONDS, async () => {
      const query = { wait_seconds: 10, until: "end" as const };
      const latest = await operator(getTask, { params: { task_id: task.id }, query });
      return terminalStatuses.has(latest.status) && latest;
    });

  const story: Story = {
    lab,
    async breaks(fault) {
      // Known before it is done: whatever happens on the way is repaired.
      faults.push(fault);
      brokenAt ||= Date.now();
      await fault.inject();
    },
    async repairs() {
      before ??= await lookUntil(lab, lookAtFault(expected), { ignored: expected.beside, onAttention });
      // Looked up while it is broken: an offline node is recorded as such only while it is.
      for (const one of seen.filter(({ code }) => silences.has(code))) await trace(one);
      await repairs();
      repairedAt = Date.now();
    },
    gives: ({ node = lab.node, type = "node.noop", params: given = {}, idempotencyKey = randomUUID() } = {}) =>
      operator(createTask, { params: { node_id: node.id }, body: { type, params: given }, idempotencyKey }),
    reads: (task) => operator(getTask, { params: { task_id: task.id } }),
    async succeeds(task) {
      const latest = await ended(task);
      if (latest.status === "completed") return latest;
      throw new Error(`the task is ${latest.status}: ${latest.failure?.code} ${latest.failure?.message}`);
    },
    async userIsRefused({ type = "node.noop", expiresSeconds = EXPIRES_SECONDS } = {}) {
      const run = ["task", "run", lab.node.name, type, "--expires", String(expiresSeconds), "--json"];
      const { code, stdout, stderr } = await lab.control.holdfast(...run);
      if (code === 0) throw new Error(`the user was not refused: ${stdout}`);
      see({ by: "user", ...readRefusal(stderr) });
    },
    async hostSees(code) {
      // Each command on the host is a process: it is run when the agent has written why.
      if (traceFor({ by: "host", code }).host_log.length > 0) {
        const written = lab.node.agent().line(({ reason }) => reason === code, brokenAt);
        await within(`the agent's log has ${code}`, PATIENCE_SECONDS, written);
      }
      const found = await until(`diagnose explains ${code}`, PATIENCE_SECONDS, async () => {
        const { findings, last_problem } = await lab.node.diagnose();
        const wanted = (one: typeof last_problem) => one?.reason === code && isRecorded("host", code, one);
        return [...findings, last_problem].find(wanted) ?? undefined;
      });
      see({ by: "host", code, ...judgedOf(found) });
    },
    async dashboardSees(code) {
      const item = await until(`the node's page says ${code}`, PATIENCE_SECONDS, async () => {
        const { attention } = await operator(getNode, { params });
        onAttention(attention);
        return attention.find((one) => one.code === code && isRecorded("dashboard", code, one));
      });
      see({ by: "dashboard", code, ...judgedOf(item) });
    },
    async dashboardClears(code) {
      await until(`the node's page no longer says ${code}`, PATIENCE_SECONDS, async () => {
        const { attention } = await operator(getNode, { params });
        return attention.every((one) => one.code !== code);
      });
    },
    async historyHas(code, wanted = () => true) {
      let delivered: DiagnosticRecord[] = [];
      const ask = async () => {
        const { items } = await operator(listNodeDiagnostics, { params });
        delivered = items.filter(({ at }) => Date.parse(at) >= brokenAt);
        return delivered.find((one) => one.reason === code && wanted(one));
      };
      const instead = () =>
        `; it has ${delivered.map(({ at, reason, detail }) => `${at} ${reason}: ${detail}`).join(" | ")}`;
      const record = await until(`the delivered history has ${code}`, PATIENCE_SECONDS, ask, instead);
      if (!seen.some(({ by, code: known }) => by === "history" && known === code)) {
        // As the node's page presents a record.
        const { at, signal, message, nextStep } = nodeReason(record.reason) ?? unknownReason;
        const owner = ownerGroupOf(record.reason);
        const words = { ...placeOf(at), signal, owner, message, next_step: nextStep };
        see({ by: "history", code, ...words, correlation_id: record.correlation_id });
      }
      return record;
    },
    async recovers() {
      const run = await lab.control.holdfast("task", "run", lab.node.name, "node.noop", "--json");
      const task = JSON.parse(run.stdout || "{}") as Partial<Task>;
      const id = task.correlation_id ?? "";
      const found = await findById(lab, id, { by: "user", code: "task_not_taken" });
      retry = {
        status: task.status ?? run.stderr,
        exit_code: run.code,
        correlation_id: id,
        audit_correlation_id: found.audit?.correlation_id ?? null,
        seconds: secondsSince(repairedAt ?? brokenAt),
      };
      after = await lookUntil(lab, lookAtHealth, { ignored: expected.beside, onAttention: () => undefined });
    },
    notes: (text) => void notes.push(`${text} (${secondsSince(began).toFixed(1)} s)`),
  };

  return {
    story,
    notes,
    repairs,
    async evidence() {
      if (!before || !after || !retry) return undefined;
      await Promise.all(seen.map(trace));
      // What nobody expected comes last.
      const turnOf = ({ by, code }: Sighting) =>
        expected.sightings.findIndex((one) => one.by === by && one.code === code) >>> 0;
      const sightings = seen.toSorted((a, b) => turnOf(a) - turnOf(b));
      return { sightings, before, after, retry, forbidden: forbiddenOf(expected.rows ?? [], new Set(said)) };
    },
  };
}

/** A host and a server can notice something before the agent has recorded it: then there is no id yet. */
function isRecorded(by: Observer, code: string, { correlation_id }: { correlation_id: string | null }): boolean {
  return correlation_id !== null || !traceFor({ by, code }).id;
}

function codesIn(attention: NodeDetail["attention"]): string[] {
  return attention.flatMap(({ reason, signal }) => [reason, signal]).filter((code) => code !== null);
}

/** A version 7 UUID begins with the millisecond of its making. */
function madeAt(id: string): number {
  return Number.parseInt(id.replace("-", "").slice(0, 12), 16);
}

type Refusal = {
  code?: string;
  message?: string;
  next_step?: string;
  correlation_id?: string;
  details?: { correlation_id?: string };
};

/** What the command line prints with `--json`. */
function readRefusal(stderr: string): Omit<Seen, "by"> {
  const { error } = JSON.parse(stderr) as { error: Refusal };
  return {
    ...{ hop: null, hop_detail: null, signal: null, owner: null },
    code: error.code ?? "",
    message: error.message ?? "",
    next_step: error.next_step ?? null,
    correlation_id: error.correlation_id ?? error.details?.correlation_id ?? null,
  };
}
