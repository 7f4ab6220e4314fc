// What happens in a recovery: a fault, the classification, what an operator does by the command line, and the proof. The
// incident has one id from its beginning to its end, and the trace of that id tells all of it. Nothing looks into the
// database.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Explanation, explainNode, recoveryChecks } from "@holdfast/contracts/endpoints/drift";
import { getIncident, type IncidentDetail } from "@holdfast/contracts/endpoints/incidents";
import { getNode, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { getTrace, type TraceEntry } from "@holdfast/contracts/endpoints/trace";
import type { Fault } from "../faults/fault.ts";
import type { Lab } from "../lab/lab.ts";
import type { LabNode } from "../lab/node.ts";
import type { Line } from "../lab/program.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import { agentCommand, type Refused } from "./agent-command.ts";

export type RecoveryStory = {
  /** Seen from the node that it happens to. */
  lab: Lab;
  /** Registered before it is injected, so that it is always repaired. */
  breaks(fault: Fault): Promise<void>;
  /** The last fault that was not repaired yet. */
  repairs(): Promise<void>;
  /** Waits until the node has this cause. The incident is the one that was opened first, or the story fails. */
  isClassified(reason: string): Promise<Explanation>;
  /** Nothing was classified so far. */
  isQuiet(): boolean;
  node(): Promise<NodeDetail>;
  /** `holdfast …` at the desk; returns what it prints as JSON. */
  desk<Printed = unknown>(...args: string[]): Promise<Printed>;
  /** `holdfast agent …` on the node's host. */
  host<Printed = unknown>(...args: string[]): Promise<Printed>;
  /** The same, on any host, where it must be refused with this code. */
  hostRefuses(code: string, node: LabNode, ...args: string[]): Promise<Refused>;
  /**
   * Waits for a line that the node's agent logs about this reason since the fault, or that line, with this in its detail. Returns
   * the line after it.
   */
  hostRecords(reason: string, since?: number, detail?: string): Promise<number>;
  /** As soon as the host has this record, the operator copies them from there and hands them in. */
  handsInRecords(reason: string): Promise<void>;
  /**
   * Waits until the incident is closed and all five checks are green, and reads its trace: what was seen, each classification,
   * the actions, and the proof, in this order. Not `isProved`: it is over when its cause is no longer seen.
   */
  isGreen(actions: readonly string[], options?: { isProved: boolean }): Promise<void>;
  /** The one that was opened first. */
  incident(): Promise<IncidentDetail>;
  notes(text: string): void;
};

export type StoryOutcome = {
  reasons: string[];
  incidentId: string | null;
  seconds: number | null;
  notes: string[];
};

export type StoryRun = { story: RecoveryStory; outcome: StoryOutcome; repairs(): Promise<void> };

export function startRecoveryStory(lab: Lab): StoryRun {
  const { operator } = lab.control;
  const params = { node_id: lab.node.id };
  const faults: Fault[] = [];
  const outcome: StoryOutcome = { reasons: [], incidentId: null, seconds: null, notes: [] };
  const startedAt = Date.now();
  const linesBefore = lab.node.lines().length;
  let brokenAt = 0;

  const explain = () => operator(explainNode, { params });
  const isSameIncident = ({ incident, causes, evidence }: Explanation) => {
    if (incident === null) return false;
    outcome.incidentId ??= incident.id;
    if (incident.id === outcome.incidentId) return true;
    const used = new Set(causes.flatMap((one) => one.evidence));
    const seen = JSON.stringify(evidence.filter(({ id }) => used.has(id)));
    throw new Error(
      `a second incident was opened, ${incident.id}, by ${seen}; the first one is ${outcome.incidentId}`,
    );
  };

  /** The explanation is made when it is read; the incident has it when the worker has classified the node. */
  const isStored = async (reason: string) => {
    const { verdicts } = await operator(getIncident, { params: { incident_id: outcome.incidentId ?? "" } });
    return verdicts.some(({ causes }) => causes.some((one) => one.reason === reason));
  };

  const story: RecoveryStory = {
    lab,
    async breaks(fault) {
      faults.push(fault);
      brokenAt ||= performance.now();
      await fault.inject();
    },
    repairs: async () => await faults.pop()?.repair(),
    async isClassified(reason) {
      let instead = "";
      const ask = async () => {
        const explanation = await explain().catch(() => undefined);
        if (!explanation) return undefined;
        instead = `: ${explanation.headline} (${explanation.causes.map((one) => one.reason).join(", ")})`;
        const isFound = explanation.causes.some((one) => one.reason === reason) && isSameIncident(explanation);
        return isFound && (await isStored(reason)) && explanation;
      };
      const explanation = await until(`classified as ${reason}`, PATIENCE_SECONDS, ask, () => instead);
      outcome.reasons.push(reason);
      return explanation;
    },
    isQuiet: () => outcome.reasons.length === 0,
    node: () => operator(getNode, { params }),
    async desk<Printed>(...args: string[]) {
      const { code, stdout, stderr } = await lab.control.holdfast(...args, "--json");
      if (code !== 0) throw new Error(`holdfast ${args.join(" ")}: ${stderr}`);
      return (stdout === "" ? undefined : JSON.parse(stdout)) as Printed;
    },
    async host<Printed>(...args: string[]) {
      const { code, stdout, stderr } = await agentCommand(lab.node, args, lab.clock?.env);
      if (code !== 0) throw new Error(`holdfast agent ${args.join(" ")}: ${stderr}`);
      return JSON.parse(stdout) as Printed;
    },
    async hostRefuses(wanted, node, ...args) {
      const { code, stderr, refused } = await agentCommand(node, args, lab.clock?.env);
      if (code === 0) throw new Error(`holdfast agent ${args.join(" ")} was not refused`);
      if (refused?.code === wanted) return refused;
      throw new Error(`holdfast agent ${args.join(" ")} was refused, not with ${wanted}: ${stderr}`);
    },
    async hostRecords(reason, since = linesBefore, detail = "") {
      const isRecord = (line: Line, index: number) =>
        index >= since && line.reason === reason && String(line["detail"]).includes(detail);
      const place = () => lab.node.lines().findIndex(isRecord);
      await until(`the host records ${reason}`, PATIENCE_SECONDS, async () => place() !== -1);
      return place() + 1;
    },
    async handsInRecords(reason) {
      const file = join(lab.directory, `${lab.node.name}.diagnostics`);
      await until(`the host has a record of ${reason}`, PATIENCE_SECONDS, async () => {
        const text = await lab.node.host.run("cat", join(lab.node.stateDir, "diagnostics.log"));
        const isFound = text.split("\n").some((line) => isRecordOf(line, reason, startedAt));
        if (isFound) writeFileSync(file, text);
        return isFound;
      });
      await story.desk("node", "evidence", lab.node.name, "--diagnostics", file);
    },
    incident: () => operator(getIncident, { params: { incident_id: outcome.incidentId ?? "" } }),
    async isGreen(actions, { isProved } = { isProved: true }) {
      let instead = "";
      await until(
        "healthy again",
        PATIENCE_SECONDS,
        async () => {
          const explanation = await explain().catch(() => undefined);
          if (!explanation) return false;
          const open = explanation.checklist.filter(({ state }) => state !== "done").map(({ check }) => check);
          instead = `: ${explanation.headline} Not done: ${open.join(", ")}`;
          if (explanation.incident !== null && !isSameIncident(explanation)) return false;
          return explanation.healthy && explanation.incident === null && open.length === 0;
        },
        () => instead,
      );
      outcome.seconds = Math.round((performance.now() - brokenAt) / 100) / 10;
      await checkStory(lab, outcome, { actions, isProved });
    },
    notes: (text) => void outcome.notes.push(text),
  };
  return {
    story,
    outcome,
    async repairs() {
      for (let fault = faults.pop(); fault !== undefined; fault = faults.pop()) await fault.repair();
    },
  };
}

async function checkStory(
  lab: Lab,
  { incidentId, reasons }: StoryOutcome,
  wanted: { actions: readonly string[]; isProved: boolean },
) {
  if (incidentId === null) throw new Error("nothing was classified");
  const { operator } = lab.control;
  const incident = await operator(getIncident, { params: { incident_id: incidentId } });
  if (incident.state !== "closed") throw new Error(`the incident ${incidentId} is still open`);
  const { items, incidents } = await operator(getTrace, { params: { trace_id: incidentId } });
  const own = incidents.filter(({ node_id }) => node_id === lab.node.id).map(({ id }) => id);
  if (own.join() !== incidentId)
    throw new Error(`the trace is of ${own.length} incidents of the node, not of one`);
  const problem = orderProblem(items, { reasons, ...wanted });
  if (problem) throw new Error(`${problem}\n${items.map(describe).join("\n")}`);
}

/** What is told, in the order of time: something seen or refused, each classification, each action, the proof, the end. */
export function orderProblem(
  items: readonly TraceEntry[],
  wanted: { reasons: readonly string[]; actions: readonly string[]; isProved?: boolean },
): string | undefined {
  const { reasons, actions, isProved = true } = wanted;
  let at = items.findIndex(({ kind }) => kind === "refusal" || kind === "observation");
  if (at === -1) return "the trace names nothing that was seen or refused";
  for (const reason of reasons) {
    const next = items.findIndex(
      ({ kind, code }, index) => index > at && kind === "classification" && code === reason,
    );
    if (next === -1) return `the trace has no classification as ${reason} after what was seen`;
    at = next;
  }
  const classified = items.findIndex(({ kind, code }) => kind === "classification" && code === reasons[0]);
  at = classified;
  for (const action of actions) {
    const next = items.findIndex(
      ({ kind, title }, index) => index > at && kind === "action" && title.startsWith(`${action} `),
    );
    if (next === -1) return `the trace has no action ${action} after the classification`;
    at = next;
  }
  const last = items.findLast(({ kind }) => kind === "classification");
  if (!isProved) {
    return last?.title.startsWith("No cause left")
      ? undefined
      : "the trace does not end with a cause that is gone";
  }
  const proved = items.flatMap(({ kind, code }, index) => (kind === "proof" && index > at ? (code ?? "") : []));
  const lacking = recoveryChecks.filter((check) => !proved.includes(check));
  if (lacking.length > 0) return `the trace has no proof after the last action of ${lacking.join(", ")}`;
  return last?.title.startsWith("Healthy again") ? undefined : "the trace does not end with a verified recovery";
}

const describe = ({ at, kind, code, title }: TraceEntry) => `  ${at} ${kind} ${code ?? "–"} ${title}`;

/** Records of earlier recoveries are in the same file. */
function isRecordOf(line: string, reason: string, since: number): boolean {
  if (!line.includes(`"reason":"${reason}"`)) return false;
  const { at, last_at } = JSON.parse(line) as { at: string; last_at?: string };
  return Date.parse(last_at ?? at) >= since;
}
