// What several drills capture: from the reports of the preflight, the logs of the processes, the host, and the public API.

import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { getTask } from "@holdfast/contracts/endpoints/tasks";
import { getTerminal, listTerminals, type TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import type { PreflightHop } from "@holdfast/contracts/preflight/checks";
import type { Gateway } from "../../lab/gateway.ts";
import type { Lab } from "../../lab/lab.ts";
import type { Line, RunningProgram } from "../../lab/program.ts";
import type { Cell, DrillScene } from "../drill.ts";

export const cell = (is: RegExp, take: Cell["take"]): Cell => ({ is, take });

export const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/** As the report has it: status and detail. */
export const hop = (when: "before" | "after", name: PreflightHop, is: RegExp): Cell =>
  cell(is, (scene) => {
    const { status, detail, checked_from } = scene[when].hops.find((one) => one.hop === name) ?? {};
    return `${status} from ${checked_from}: ${detail}`;
  });

const since = (lines: readonly Line[], from: number) =>
  lines.filter((line) => Date.parse(String(line["time"])) >= from);

/** Of the agent, since the fault: the first line of this reason. */
export const agentLog = (reason: RegExp, is: RegExp): Cell =>
  cell(is, ({ lab, brokenAt }) => {
    const lines = since(lab.node.lines(), brokenAt);
    const line = lines.find((one) => reason.test(String(one.reason ?? one["code"] ?? one.msg)));
    return line ? `${line.reason ?? line["code"] ?? ""} ${line.msg} ${line["detail"] ?? ""}` : "no such line";
  });

/** Lines of the gateway about one terminal. */
export const gatewayLines = (lab: Lab, session: string | null) => linesOf(gatewayOf(lab).program, session);

export function linesOf(gateway: RunningProgram | undefined, session: string | null): string {
  const lines = gateway?.lines() ?? [];
  const about = lines.filter((line) => line["session_id"] === session || line["terminal_id"] === session);
  return about.map(({ msg, ...line }) => `${msg} ${line["code"] ?? line.reason ?? ""}`.trim()).join("; ");
}

export function gatewayOf({ gateway }: Lab): Gateway {
  if (!gateway) throw new Error("this lab has no gateway");
  return gateway;
}

/** The terminal that the user could not open, found by the id of the error. */
export async function terminalOfUser({ lab, user }: DrillScene): Promise<TerminalSession> {
  const query = { correlation_id: user.correlation_id ?? "" };
  const [terminal] = (await lab.control.operator(listTerminals, { query })).items;
  if (!terminal) throw new Error(`no terminal has the id ${user.correlation_id}`);
  return terminal;
}

/** As the dashboard shows the terminal that the preflight opened. */
export async function terminalOf(scene: DrillScene, when: "before" | "after"): Promise<TerminalSession> {
  const terminal_id = scene[when].session_id ?? "";
  return scene.lab.control.operator(getTerminal, { params: { terminal_id } });
}

export const heartbeat: Cell["take"] = async ({ lab }) => {
  const { connection, heartbeat_at } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
  return `${connection}, last heartbeat ${heartbeat_at}`;
};

/** The ids of the lab, as the report names them. */
export const idsInReport: Cell["take"] = ({ lab, before }) => {
  const same = before.allocation_id === lab.allocation?.id && before.node_id === lab.node.id;
  return `${same ? "as allocated" : "others"}: allocation ${before.allocation_id}, node ${before.node_id}`;
};
export const idsExpected = new RegExp(`^as allocated: allocation ${UUID}, node ${UUID}$`);

/** As the report names it. */
export const endpointProfile = cell(/^https:\/\/nodes[.]holdfast[.]test:18442 of profile \S+/, ({ before }) => {
  const { node_runtime_api_url, profile } = before.expected;
  return `${node_runtime_api_url} of profile ${profile}`;
});

/** The user's own id, found again on the dashboard. */
export const sameId: Cell["take"] = ({ user }) =>
  `${user.correlation_id} is in the audit as ${user.audit_correlation_id}`;
export const sameIdExpected = new RegExp(`^(${UUID}) is in the audit as \\1$`);

export const taskOf = async ({ lab }: DrillScene, taskId: string | null) => {
  const { id, status, type } = await lab.control.operator(getTask, { params: { task_id: taskId ?? "" } });
  return `${type} ${id} ${status}`;
};
