// What happens in a scenario, in the words of its telling: something breaks, somebody sees it, it is mended, the
// same task succeeds. Everything is seen through what operators have: the public API, and `holdfast agent
// diagnose` on the host. Nothing looks into the database.

import { randomUUID } from "node:crypto";
import { type DiagnosticReason, diagnosticReasons, type Hop } from "@holdfast/contracts/diagnostics";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getNode, listNodeDiagnostics } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { DiagnosticRecord } from "@holdfast/contracts/node-protocol";
import type { Fault } from "./faults/fault.ts";
import type { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/node.ts";
import { PATIENCE_SECONDS, until, within } from "./until.ts";

export type Sighting = {
  by: "host" | "dashboard" | "history" | "task";
  reason: string;
  hop: Hop | null;
  signal: string | null;
  owner: string | null;
  nextStep: string;
  detail: string;
  /** Since the fault. */
  seconds: number;
};

export type TaskOptions = {
  node?: LabNode;
  type?: string;
  params?: Record<string, unknown>;
  idempotencyKey?: string;
};

export type Story = {
  lab: Lab;
  breaks(fault: Fault): Promise<void>;
  /** Everything that was broken. */
  mends(): Promise<void>;
  /** A no-op, unless told, as an operator gives it to the node; the first one's correlation id is the scenario's. */
  gives(options?: TaskOptions): Promise<Task>;
  reads(task: Task): Promise<Task>;
  /** Ends well. */
  succeeds(task: Task): Promise<Task>;
  /** Ends with this failure, which says what to do. */
  fails(task: Task, code: string): Promise<Sighting>;
  /** The agent writes it to its log, and `holdfast agent diagnose` explains it. */
  hostSees(reason: DiagnosticReason): Promise<Sighting>;
  dashboardSees(code: string): Promise<Sighting>;
  /** Nothing needs attention on the node's page, and the same diagnosis on its host finds nothing any more. */
  allIsWell(): Promise<void>;
  /** What the agent noted since the fault and has delivered; only such a record, if one is looked for. */
  historyHas(
    reason: DiagnosticReason,
    wanted?: (record: DiagnosticRecord) => boolean,
  ): Promise<Sighting & { record: DiagnosticRecord }>;
  notes(text: string): void;
};

export type Told = {
  sightings: Sighting[];
  notes: string[];
  correlationId: string | undefined;
  brokenAt: number | undefined;
  mendedAt: number | undefined;
  recoveredAt: number | undefined;
};

export function tellStory(lab: Lab): { story: Story; told: Told; mends(): Promise<void> } {
  const { operator } = lab.control;
  const faults: Fault[] = [];
  const began = Date.now();
  const told: Told = {
    sightings: [],
    notes: [],
    correlationId: undefined,
    brokenAt: undefined,
    mendedAt: undefined,
    recoveredAt: undefined,
  };
  const node = { node_id: lab.node.id };
  const brokenAt = () => told.brokenAt ?? 0;
  const see = (sighting: Omit<Sighting, "seconds">, at = Date.now()): Sighting => {
    if (sighting.nextStep === "") throw new Error(`${sighting.reason} does not say what to do`);
    const seconds = (at - brokenAt()) / 1000;
    told.sightings.push({ ...sighting, seconds });
    return { ...sighting, seconds };
  };
  const mends = async () => {
    // The last first, and each once, whatever becomes of the others.
    for (let fault = faults.pop(); fault !== undefined; fault = faults.pop()) await fault.mend();
  };
  const ended = (task: Task) =>
    until(`the task ${task.id} ends`, PATIENCE_SECONDS, async () => {
      const query = { wait_seconds: 1, until: "end" as const };
      const latest = await operator(getTask, { params: { task_id: task.id }, query });
      return terminalStatuses.has(latest.status) && latest;
    });
  const inAudit = (correlationId: string) =>
    until(`the audit has ${correlationId}`, PATIENCE_SECONDS, async () => {
      const { items } = await operator(listAudit, { query: { correlation_id: correlationId } });
      return items.some(({ action }) => action === "task.create");
    });

  const story: Story = {
    lab,
    async breaks(fault) {
      // Known before it is done: whatever happens on the way is mended.
      faults.push(fault);
      told.brokenAt = Date.now();
      await fault.inflict();
    },
    async mends() {
      await mends();
      told.mendedAt ??= Date.now();
    },
    async gives({ node: to = lab.node, type = "node.noop", params = {}, idempotencyKey = randomUUID() } = {}) {
      const correlationId = randomUUID();
      const body = { type, params };
      const task = await operator(createTask, {
        params: { node_id: to.id },
        body,
        idempotencyKey,
        correlationId,
      });
      if (task.correlation_id === correlationId) await inAudit(correlationId);
      if (to === lab.node) told.correlationId ??= task.correlation_id;
      return task;
    },
    reads: (task) => operator(getTask, { params: { task_id: task.id } }),
    async succeeds(task) {
      const latest = await ended(task);
      if (latest.status !== "completed") {
        throw new Error(`the task is ${latest.status}: ${latest.failure?.code} ${latest.failure?.message}`);
      }
      if (told.mendedAt !== undefined) told.recoveredAt ??= Date.now();
      return latest;
    },
    async fails(task, code) {
      const { failure, status } = await ended(task);
      if (failure?.code !== code) throw new Error(`the task is ${status}, with ${failure?.code} and not ${code}`);
      return see({ ...meaningOf(code), by: "task", nextStep: failure.next_step, detail: failure.message });
    },
    async hostSees(reason) {
      const line = lab.node.agent().line((one) => one.reason === reason, brokenAt());
      await within(`the agent's log has ${reason}`, PATIENCE_SECONDS, line);
      const at = Date.now();
      const found = await until(`diagnose explains ${reason}`, PATIENCE_SECONDS, async () => {
        const { findings, last_problem } = await lab.node.diagnose();
        return [...findings, last_problem].find((one) => one?.reason === reason) ?? undefined;
      });
      const { hop, signal, owner, next_step, detail } = found;
      return see({ by: "host", reason, hop, signal, owner, nextStep: next_step, detail }, at);
    },
    async dashboardSees(code) {
      const item = await until(`the node's page says ${code}`, PATIENCE_SECONDS, async () => {
        const { attention } = await operator(getNode, { params: node });
        return attention.find((one) => one.code === code);
      });
      const { hop, signal, owner, message, next_step } = item;
      return see({ by: "dashboard", reason: code, hop, signal, owner, nextStep: next_step, detail: message });
    },
    async allIsWell() {
      await until("nothing needs attention", PATIENCE_SECONDS, async () => {
        const { attention, connection } = await operator(getNode, { params: node });
        return attention.length === 0 && connection === "online";
      });
      await until("diagnose finds nothing", PATIENCE_SECONDS, async () => {
        const { findings, last_problem } = await lab.node.diagnose();
        return findings.length === 0 && last_problem === null;
      });
    },
    async historyHas(reason, wanted = () => true) {
      const record = await until(`the delivered history has ${reason}`, PATIENCE_SECONDS, async () => {
        const { items } = await operator(listNodeDiagnostics, { params: node });
        return items.find((one) => one.reason === reason && Date.parse(one.at) >= brokenAt() && wanted(one));
      });
      return { record, ...see({ ...meaningOf(reason), by: "history", detail: record.detail }) };
    },
    notes: (text) => void told.notes.push(`${text} (${((Date.now() - began) / 1000).toFixed(1)} s)`),
  };
  return { story, told, mends };
}

/** What a code means where the answer that has it does not say so itself. */
function meaningOf(code: string): Pick<Sighting, "reason" | "hop" | "signal" | "owner" | "nextStep"> {
  const entry = Object.hasOwn(diagnosticReasons, code) ? diagnosticReasons[code as DiagnosticReason] : undefined;
  const { hop = null, signal = null, owner = null, nextStep = "" } = entry ?? {};
  return { reason: code, hop, signal, owner, nextStep };
}
