// holdfast node explain: why a node is as it is. First what a tired person needs, then the parts of the contract with the
// node, then the evidence.

import {
  type Cause,
  type ContractPartState,
  type Explanation,
  explainNode,
  type RecoveryCheckState,
} from "@holdfast/contracts/endpoints/drift";
import type { ActionWay } from "@holdfast/contracts/reasons/actions";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { owners } from "@holdfast/contracts/reasons/owners";
import { nextActions } from "@holdfast/contracts/reasons/vocabulary";
import { type OfferedAction, offeredAction } from "@holdfast/contracts/words/actions";
import { needsRecovery } from "@holdfast/contracts/words/recovery";
import {
  contractPartStateTitles,
  contractPartTitles,
  recoveryCheckStateTitles,
  recoveryCheckTitles,
} from "@holdfast/contracts/words/state-titles";
import type { Command } from "commander";
import { clientOf, findServerAndOrg, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { ago, localTime, printResult, table } from "../../output.ts";
import { describeClone } from "./describe-clone.ts";

export function addExplain(node: Command): void {
  withServerOptions(node.command("explain"))
    .description("explain a node's state: the cause, who repairs it and how, and the evidence")
    .argument("<node>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const server = await findServerAndOrg(options);
      const client = clientOf(server);
      const { id } = await findNode(client, wanted);
      const explained = await client(explainNode, { params: { node_id: id } });
      printResult(options, explained, () => describeExplanation(explained, server));
    });
}

const shapes: Record<ContractPartState, string> = { in_order: "●", drifted: "■", unknown: "○" };

/** `url`: of the server, which serves the runbooks, too. */
export function describeExplanation(explained: Explanation, { url }: { url: string }): string {
  const { headline, causes, incident, part_of, parts, evidence, layers } = explained;
  return [
    headline,
    ...causes.flatMap((cause) => [
      ...["", ...describeCause(cause, explained.node_name, url)],
      ...describeAction(offeredAction(cause, explained)),
    ]),
    "",
    `Management ${layers.management}, workload ${layers.workload}, user access ${layers.access}.`,
    ...(incident ? [`Incident ${incident.id}, opened ${ago(incident.opened_at)}.`] : []),
    ...(part_of ? [`Part of incident ${part_of.incident_id}: ${part_of.shared.sentence}`] : []),
    ...(explained.clone ? ["", "Two machines use this node's identity:", ...describeClone(explained.clone)] : []),
    ...(needsRecovery(explained) ? ["", ...describeChecklist(explained)] : []),
    "",
    table(parts, [
      { title: "part", of: ({ part }) => contractPartTitles[part] },
      {
        title: "state",
        of: ({ state }) => `${shapes[state]} ${contractPartStateTitles[state].title.toLowerCase()}`,
      },
      { title: "observed", of: ({ observed_at }) => ago(observed_at) },
      { title: "by", of: ({ observer }) => observer },
    ]),
    "",
    table(evidence, [
      { title: "evidence", of: ({ kind, key }) => (key === null ? kind : `${kind} ${key}`) },
      { title: "value", of: ({ value }) => value },
      { title: "observed", of: ({ observed_at, fresh }) => `${ago(observed_at)}${fresh ? "" : " (outdated)"}` },
      { title: "by", of: ({ observer }) => observer },
      { title: "correlation id", of: ({ correlation_id }) => correlation_id },
      { title: "id", of: ({ id }) => id },
    ]),
  ].join("\n");
}

const checkShapes: Record<RecoveryCheckState, string> = { done: "●", failed: "■", unknown: "○" };

function describeChecklist({ checklist, repaired_at }: Pick<Explanation, "checklist" | "repaired_at">): string[] {
  const open = checklist.filter(({ state }) => state !== "done").length;
  const after = repaired_at === null ? "" : ` after ${localTime(repaired_at)}`;
  const head =
    open === 0 ? "Recovered: all of it was seen." : `To be seen${after} before the node counts as recovered:`;
  return [
    head,
    ...checklist.map(({ check, state, evidence, observed_at }) => {
      const seen = evidence === null ? "" : `, ${ago(observed_at)}, evidence ${evidence}`;
      const word = recoveryCheckStateTitles[state].title.toLowerCase();
      return `  ${checkShapes[state]} ${recoveryCheckTitles[check]}: ${word}${seen}`;
    }),
  ];
}

/** What the next action does and does not do, and its command or where else it is carried out. */
function describeAction({ title, does, doesNot, way, command, until }: OfferedAction): string[] {
  const limit = until === null ? [] : [`expected to be over by ${localTime(new Date(until).toISOString())}`];
  const how = way.by === "person" ? [`${places[way.where]}: ${way.how}`] : command === null ? limit : [command];
  return [
    `  ${title}`,
    ...does.map((one) => `    + ${one}`),
    ...doesNot.map((one) => `    - ${one}`),
    ...how.map((one) => `    > ${one}`),
  ];
}

const places: Record<Extract<ActionWay, { by: "person" }>["where"], string> = {
  ...{ host: "on the host", server: "on the server", provider: "at the provider", page: "in Holdfast" },
};

function describeCause(cause: Cause, node: string, url: string): string[] {
  const { reason, signal, title, severity, confidence, owner_id, next_action, symptoms, since } = cause;
  const codes = signal === null || signal === reason ? reason : `${reason}, ${signal}`;
  const involved = cause.also_involves.map((one) => owners[one].title.toLowerCase());
  const rows: [string, string | null][] = [
    ["severity", `${severity}, ${confidence} confidence, since ${localTime(since)} (${ago(since)})`],
    ["owner", owner_id && [owners[owner_id].title, ...involved.map((one) => `also ${one}`)].join("; ")],
    ["next", next_action && nextActions[next_action]],
    ["how", adviceFor(node, cause.next_step)],
    ["explains", symptoms.length === 0 ? null : symptoms.map((one) => `${one.title} (${one.reason})`).join(", ")],
    ["changes with", cause.changed_by],
    ["runbook", cause.runbook && `${url}${cause.runbook}`],
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [`${title} (${codes})`, ...shown.map(([label, text]) => `  ${label.padEnd(13)}${text}`)];
}
