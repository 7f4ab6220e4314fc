// Runs one drill: breaks one thing, lets the user try, runs the preflight, reads the dashboard, captures what the runbook asks for, repairs,
// and runs the same preflight and the user's request again. Nothing looks into the database.

import { codeOf } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getNode, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { listTerminals } from "@holdfast/contracts/endpoints/terminals";
import type { PreflightReport } from "@holdfast/contracts/preflight/report";
import type { Lab } from "../lab/lab.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";
import type { Cell, Drill, DrillEvidence, DrillScene, PreflightSeen, Refused } from "./drill.ts";

/** The worker looks for silent nodes every five seconds. */
const PAGE_SECONDS = 60;
const EXPIRES_SECONDS = "5";

export async function gather(drill: Drill, lab: Lab): Promise<DrillEvidence> {
  const fault = drill.fault(lab);
  await fault.prepare?.();
  const brokenAt = Date.now();
  const scene = { lab, brokenAt } as DrillScene;
  let evidence: Pick<DrillEvidence, "user" | "page" | "cells"> & { before: PreflightSeen };
  try {
    await fault.inject();
    await drill.takesEffect?.(scene);
    scene.user = await (drill.expect.user === "served" ? served : refused)(drill, scene);
    const preflight = await runPreflight(drill, lab);
    scene.before = preflight.report;
    const page = await dashboard(drill, lab);
    const { message: _, ...user } = scene.user;
    evidence = { user, page, before: preflight.seen, cells: await capture(drill.before, scene) };
  } finally {
    await fault.repair();
  }
  const repairedAt = Date.now();
  await isBack(lab);
  await drill.afterRepair?.(scene);
  const after = await readyAgain(drill, scene);
  const retry = { ...(await retried(drill, lab)), seconds: secondsSince(repairedAt) };
  const cells = { ...evidence.cells, ...(await capture(drill.after, scene)) };
  await isClear(lab);
  return {
    ...{ user: evidence.user, page: evidence.page, cells, retry, node_id: lab.node.id },
    preflight: { before: evidence.before, after },
  };
}

const secondsSince = (from: number) => Math.round((Date.now() - from) / 100) / 10;

async function auditId({ control }: Lab, id: string | null): Promise<string | null> {
  if (id === null) return null;
  const found = await until(`the audit has ${id}`, 30, async () => {
    const { items } = await control.operator(listAudit, { query: { correlation_id: id } });
    return items[0]?.correlation_id;
  }).catch(() => undefined);
  return found ?? null;
}

async function refused(drill: Drill, { lab, brokenAt }: DrillScene): Promise<Refused> {
  const { code, stdout, stderr } = await attempt(drill, lab);
  if (code === 0) throw new Error(`the user was not refused: ${stdout}`);
  const { error } = JSON.parse(stderr) as {
    error: Record<string, unknown> & { details?: Record<string, unknown> };
  };
  const text = (name: string) => (error[name] ?? error.details?.[name] ?? null) as string | null;
  const correlation_id = text("correlation_id");
  return {
    ...{ exit_code: code, code: text("code") ?? "", hop: text("hop"), message: text("message") ?? "" },
    ...{ next_step: text("next_step") ?? "", correlation_id, seconds: secondsSince(brokenAt) },
    audit_correlation_id: await auditId(lab, correlation_id),
  };
}

async function served(drill: Drill, { lab, brokenAt }: DrillScene): Promise<Refused> {
  const request = await retried(drill, lab);
  return { ...request, code: "", hop: null, message: "", next_step: "", seconds: secondsSince(brokenAt) };
}

function attempt({ user }: Drill, { control, node }: Lab) {
  if (user === "terminal") return control.typed("exit\n", "terminal", `alice@${node.name}`, "--json");
  return control.holdfast("task", "run", node.name, "node.noop", "--expires", EXPIRES_SECONDS, "--json");
}

type Preflight = { report: PreflightReport; seen: PreflightSeen };

async function runPreflight({ withoutSsh }: Drill, lab: Lab): Promise<Preflight> {
  const { node, allocation } = lab;
  const target = ["--node-id", node.id, "--allocation-id", allocation?.id ?? ""];
  const login = withoutSsh ? [] : ["--node-host", node.address];
  const { code, stdout, stderr } = await lab.control.holdfast("preflight", "--json", ...target, ...login);
  if (stdout === "") throw new Error(`holdfast preflight: ${stderr}`);
  const report = JSON.parse(stdout) as PreflightReport;
  const { result, failed_hop, symptom_hop, owner, node_id, correlation_id } = report;
  const seen = {
    ...{ exit_code: code, result, failed_hop, symptom_hop, owner, node_id, correlation_id },
    ...{ signal: report.classification?.signal ?? null, audit_correlation_id: await auditId(lab, correlation_id) },
  };
  return { report, seen };
}

/** What the operator sees, with the report handed in. */
async function dashboard({ expect }: Drill, lab: Lab): Promise<DrillEvidence["page"]> {
  let last: NodeDetail["attention"][number] | undefined;
  await until("the node's page names the failed hop", PAGE_SECONDS, async () => {
    const { attention } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
    last = attention.find(({ hop }) => hop === expect.page.hop) ?? attention[0];
    return last?.hop === expect.page.hop && (expect.page.id === false || last.correlation_id !== null);
  }).catch(() => undefined);
  const { hop = null, signal = null, correlation_id = null } = last ?? {};
  return { hop, signal, correlation_id, audit_correlation_id: await auditId(lab, correlation_id) };
}

async function capture(
  cells: Record<string, Cell> | undefined,
  scene: DrillScene,
): Promise<Record<string, string>> {
  const taken: Record<string, string> = {};
  for (const [name, { take }] of Object.entries(cells ?? {})) {
    taken[name] = await Promise.resolve(take(scene)).catch((error: Error) => `not captured: ${error.message}`);
  }
  return taken;
}

async function isBack({ control, node }: Lab): Promise<void> {
  await until("the node is online", PATIENCE_SECONDS, async () => {
    const { connection } = await control.operator(getNode, { params: { node_id: node.id } });
    return connection === "online";
  });
}

/** An agent needs a moment to have learned that it is repaired; the last report is judged. */
async function readyAgain(drill: Drill, scene: DrillScene): Promise<PreflightSeen> {
  let last: Preflight | undefined;
  await until("the same preflight is ready", PATIENCE_SECONDS, async () => {
    last = await runPreflight(drill, scene.lab);
    return last.seen.result === "ready";
  }).catch(() => undefined);
  if (!last) throw new Error("the preflight did not run after the repair");
  scene.after = last.report;
  return last.seen;
}

async function retried(drill: Drill, lab: Lab): Promise<Omit<DrillEvidence["retry"], "seconds">> {
  const { code, stdout, stderr } = await attempt(drill, lab);
  if (code !== 0) throw new Error(`the user's request fails: ${stderr}`);
  const id = drill.user === "task" ? (JSON.parse(stdout) as { correlation_id: string }).correlation_id : null;
  const correlation_id = id ?? (await newestTerminal(lab)).correlation_id;
  return { exit_code: code, correlation_id, audit_correlation_id: await auditId(lab, correlation_id) };
}

async function newestTerminal({ control, allocation }: Lab) {
  const query = { allocation_id: allocation?.id ?? "" };
  const [newest] = (await control.operator(listTerminals, { query })).items;
  if (!newest) throw new Error("nobody has opened a terminal");
  return newest;
}

/** Nothing of it is left for the next drill in this lab. */
async function isClear({ control, node }: Lab): Promise<void> {
  let left = "";
  const ask = async () => {
    try {
      const { attention } = await control.operator(getNode, { params: { node_id: node.id } });
      left = attention.map(({ code }) => code).join(", ");
      return attention.length === 0;
    } catch (error) {
      left = codeOf(error) ?? "";
      return false;
    }
  };
  await until("the node's page is clear", PATIENCE_SECONDS, ask, () => `: ${left}`);
}
