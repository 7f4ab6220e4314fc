// Which queued items get a VM now, and why the others do not. Pure: it knows the queue, the controller's builds and the time. The
// statement that claims checks limits and uniqueness again.

import type { ItemVerdict, JenkinsLabelPolicy } from "@holdfast/contracts/endpoints/jenkins";
import { type LabelExpression, LabelSyntaxError, matchesLabels, parseLabels } from "../labels/expression.ts";

export type QueuedItem = {
  queueId: number;
  task: string;
  /** As Jenkins reports it; undefined: none. */
  label: string | undefined;
  /** Jenkins holds back all others itself. */
  buildable: boolean;
  why: string;
  queuedAt: number | undefined;
};

export type Serving = {
  labels: readonly JenkinsLabelPolicy[];
  mostLeases: number;
  burst: number;
  cooldownSeconds: number;
};

/** Builds of the controller. */
export type KnownBuild = {
  queueId: number;
  createdAt: number;
  /** Undefined: it has not ended. */
  finishedAt: number | undefined;
};

export type JudgedItem = { item: QueuedItem; verdict: ItemVerdict; message: string };
export type Decided = {
  claims: { item: QueuedItem & { label: string }; policy: JenkinsLabelPolicy }[];
  judged: JudgedItem[];
};

/** However often its VM failed, an item is tried again after this time. */
const LONGEST_COOLDOWN_MS = 3_600_000;

/** The oldest item first, as Jenkins serves them. */
export function decideClaims(
  items: readonly QueuedItem[],
  builds: readonly KnownBuild[],
  serving: Serving,
  now: number,
): Decided {
  const decided: Decided = { claims: [], judged: [] };
  let open = builds.filter(({ finishedAt }) => finishedAt === undefined).length;
  let recent = builds.filter(({ createdAt }) => createdAt > now - serving.cooldownSeconds * 1000).length;
  for (const item of [...items].sort(byAge)) {
    const judge = (verdict: ItemVerdict, message: string) => decided.judged.push({ item, verdict, message });
    const own = builds.filter(({ queueId }) => queueId === item.queueId);
    if (own.some(({ finishedAt }) => finishedAt === undefined)) {
      judge("has_vm", "It has a VM, or one is being made.");
      continue;
    }
    if (!item.buildable) {
      judge("not_buildable", item.why || "Jenkins holds it back.");
      continue;
    }
    if (item.label === undefined) {
      judge("no_label", "It has no label that Jenkins reports. Give its job a label expression.");
      continue;
    }
    const served = policyFor(item.label, serving.labels);
    if ("problem" in served) {
      judge(served.verdict, served.problem);
      continue;
    }
    const pause = pauseAfter(own, serving.cooldownSeconds) - now;
    if (pause > 0) {
      judge(
        "cooldown",
        `Its last VM ended without its build. Another one is requested in ${Math.ceil(pause / 1000)} s.`,
      );
    } else if (open >= serving.mostLeases) {
      judge("cap", `The controller has ${open} of at most ${serving.mostLeases} VMs.`);
    } else if (recent >= serving.burst) {
      judge(
        "burst",
        `${recent} VMs were requested in the last ${serving.cooldownSeconds} s, and no more are allowed.`,
      );
    } else {
      open += 1;
      recent += 1;
      judge("gets_vm", `It gets a VM with the label ${served.policy.lease_label}.`);
      decided.claims.push({ item: { ...item, label: item.label }, policy: served.policy });
    }
  }
  return decided;
}

const byAge = (a: QueuedItem, b: QueuedItem) => (a.queuedAt ?? 0) - (b.queuedAt ?? 0) || a.queueId - b.queueId;

type Served = { policy: JenkinsLabelPolicy } | { verdict: ItemVerdict; problem: string };

/** The first policy whose node may run it. A node also has its own name as a label, which no queued item can have. */
function policyFor(label: string, policies: readonly JenkinsLabelPolicy[]): Served {
  let expression: LabelExpression;
  try {
    expression = parseLabels(label);
  } catch (error) {
    if (!(error instanceof LabelSyntaxError)) throw error;
    return {
      verdict: "label_unreadable",
      problem: `The label ${JSON.stringify(label)} cannot be read: ${error.message}.`,
    };
  }
  const policy = policies.find(({ jenkins_labels }) => matchesLabels(expression, new Set(jenkins_labels)));
  return policy
    ? { policy }
    : { verdict: "not_served", problem: `No label policy of the controller matches ${label}.` };
}

/** When another VM may be requested for an item. It is still queued, so none of these ran its build. */
function pauseAfter(own: readonly KnownBuild[], cooldownSeconds: number): number {
  const last = Math.max(0, ...own.map(({ finishedAt }) => finishedAt ?? 0));
  if (last === 0) return 0;
  return last + Math.min(cooldownSeconds * 1000 * 2 ** Math.min(own.length - 1, 30), LONGEST_COOLDOWN_MS);
}
