// Jenkins controllers as text for people.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type {
  checkJenkinsController,
  getJenkinsController,
  JenkinsBuild,
  JenkinsController,
  JenkinsQueueItem,
} from "@holdfast/contracts/endpoints/jenkins";
import {
  itemVerdictTitles,
  jenkinsBuildStateTitles,
  jenkinsControllerStateTitles,
  leaseStateTitles,
} from "@holdfast/contracts/words/vm-titles";
import { type Column, localTime, table } from "../../output.ts";

const stateOf = ({ state }: JenkinsController) => jenkinsControllerStateTitles[state].title.toLowerCase();

export const controllerRows: Column<JenkinsController>[] = [
  { title: "name", of: (row) => row.name },
  { title: "state", of: (row) => stateOf(row) + (row.problem ? ` (${row.problem.code})` : "") },
  { title: "url", of: (row) => row.url },
  { title: "queued", of: (row) => String(row.queued) },
  { title: "VMs", of: (row) => `${row.builds} of at most ${row.max_leases}` },
  { title: "last poll", of: (row) => localTime(row.last_polled_at) ?? "never" },
];

const itemRows: Column<JenkinsQueueItem>[] = [
  { title: "item", of: (row) => String(row.queue_id) },
  { title: "job", of: (row) => row.task },
  { title: "label", of: (row) => row.label ?? "none" },
  { title: "decision", of: (row) => itemVerdictTitles[row.verdict].title.toLowerCase() },
  { title: "why", of: (row) => row.message },
];

const buildRows: Column<JenkinsBuild>[] = [
  { title: "job", of: (row) => row.task },
  {
    title: "state",
    of: (row) =>
      jenkinsBuildStateTitles[row.status].title.toLowerCase() + (row.reason ? ` (${row.reason.code})` : ""),
  },
  { title: "lease", of: (row) => row.lease_id },
  {
    title: "lease state",
    of: (row) => (row.lease_status ? leaseStateTitles[row.lease_status].title.toLowerCase() : null),
  },
  { title: "build", of: (row) => row.build_url },
  { title: "claimed", of: (row) => localTime(row.created_at) },
];

export function describeController(one: AnswerOf<typeof getJenkinsController>): string {
  const rows: [string, string][] = [
    ["state", stateOf(one)],
    ["url", one.url],
    ["user", one.user],
    [
      "labels",
      one.labels
        .map(({ jenkins_labels, lease_label }) => `${jenkins_labels.join(",")} → ${lease_label}`)
        .join("; "),
    ],
    [
      "limits",
      `${one.max_leases} VMs, ${one.burst} within ${one.cooldown_seconds} s, agents connect within ${one.connect_seconds} s`,
    ],
    ["last poll", localTime(one.last_polled_at) ?? "never"],
    ["last success", localTime(one.last_succeeded_at) ?? "never"],
  ];
  return [
    `Controller ${one.name}`,
    ...rows.map(([label, value]) => `  ${label.padEnd(12)} ${value}`),
    ...(one.problem ? ["", `  ${one.problem.message} (${one.problem.code})`, `  ${one.problem.next_step}`] : []),
    "",
    one.queue.length === 0 ? "Its queue is empty." : `Queue:\n${table(one.queue, itemRows)}`,
    "",
    one.recent.length === 0 ? "No build has had a VM yet." : `Builds:\n${table(one.recent, buildRows)}`,
  ].join("\n");
}

export function describeCheck(name: string, result: AnswerOf<typeof checkJenkinsController>): string {
  if (result.problem)
    return `Controller ${name} cannot be used: ${result.problem.message} (${result.problem.code})\n${result.problem.next_step}`;
  return `Controller ${name} can be used: Jenkins ${result.version}, ${result.queued} queued items, ${result.nodes} nodes.`;
}
