// What stands between nodes and the server, and must never cost a node its identity.

import { getTrace } from "@holdfast/contracts/endpoints/trace";
import { isRejection, type NodeReasonCode, nodeReasons } from "@holdfast/contracts/reasons/node";
import { edgeOf, edgeRestartsWith } from "../faults/edge.ts";
import { nameLeadsToPublicEdge } from "../faults/public-edge.ts";
import { requestProblem } from "./pace.ts";
import type { Recovery } from "./recovery.ts";
import { hasRecoveryToken } from "./steps.ts";
import type { RecoveryStory } from "./story.ts";
import { lapse, lapseUntilConnected } from "./time.ts";

/** Of an agent that has to be repaired from outside, and a little more. */
const LONGEST_PAUSE = 35;

export const publicEdge: Recovery = {
  name: "public-edge",
  title:
    "the server's name leads to a public edge that terminates TLS, so that no node's certificate reaches the server",
  async run(story) {
    const { lab } = story;
    // With it the node could get another identity, also through the edge.
    await hasRecoveryToken(lab);
    const keepsIdentity = await identityOf(story);
    const edge = nameLeadsToPublicEdge(lab);
    await story.breaks(edge);
    await story.handsInRecords("edge_terminates_tls");
    await story.isClassified("endpoint_profile_drift");
    const lines = lab.node.lines().length;
    await edge.presentsItsOwn();
    await lapse(lab, LONGEST_PAUSE);
    await story.hostRecords("edge_terminates_tls", lines, "the server received the certificate");
    await story.isClassified("endpoint_profile_drift");
    await story.repairs();
    await lapseUntilConnected(lab);
    await story.isGreen([]);
    await keepsIdentity();
  },
};

const TEN_MINUTES = 600;

export const rateLimited: Recovery = {
  name: "rate-limited",
  title: "the edge answers every request with 429 for ten minutes",
  async run(story) {
    const { lab } = story;
    await hasRecoveryToken(lab);
    const keepsIdentity = await identityOf(story);
    const edge = edgeOf(lab);
    const counted = edge.program.lines().length;
    const page = "<html><h1>Too many requests</h1></html>";
    const rule = { path: "", do: "answer", status: 429, page, close: true } as const;
    const startedAt = performance.now();
    await story.breaks(edgeRestartsWith(lab, "the edge returns 429", rule));
    await story.handsInRecords("edge_rate_limited");
    await story.isClassified("edge_rate_limited");
    await lapse(lab, TEN_MINUTES);
    const seconds = TEN_MINUTES + (performance.now() - startedAt) / 1000;
    await story.isClassified("edge_rate_limited");
    const paths = edge.program
      .lines()
      .slice(counted)
      .flatMap(({ answered, path }) => (answered === 429 ? String(path) : []));
    const problem = requestProblem(paths, seconds);
    if (problem) throw new Error(problem);
    story.notes(`${paths.length} requests in ${Math.round(seconds)} s`);
    await story.repairs();
    await lapseUntilConnected(lab);
    // The end of a rate limit needs no proof, so nobody runs a task to get one.
    await story.desk("task", "run", lab.node.name, "node.noop");
    await story.isGreen([], { isProved: false });
    await keepsIdentity();
    await serverNeverAway(story);
  },
};

/** While minutes pass in seconds, the api has its turns, too: otherwise the lab itself would be the cause. */
async function serverNeverAway({ lab, incident }: RecoveryStory): Promise<void> {
  const { id } = await incident();
  const { items } = await lab.control.operator(getTrace, { params: { trace_id: id } });
  const away = items.find(({ title }) => title.startsWith("Control plane: not ready"));
  if (away) throw new Error(`at ${away.at}: ${away.title}`);
}

/** Returns a check that the node has the same identity as now, and that nobody called it rejected meanwhile. */
async function identityOf(story: RecoveryStory): Promise<() => Promise<void>> {
  const serial = async () => (await story.node()).certificate?.serial;
  const before = await serial();
  const lines = story.lab.node.lines().length;
  return async () => {
    if ((await serial()) !== before) throw new Error("the node got another certificate");
    const { verdicts } = await story.incident();
    const said = [
      ...story.lab.node
        .lines()
        .slice(lines)
        .map(({ reason }) => reason),
      ...verdicts.flatMap(({ causes }) => causes.map((one) => one.reason)),
    ];
    const wrong = said.find((reason) => reason !== undefined && ofIdentity.has(reason));
    if (wrong) throw new Error(`it was called ${wrong}`);
  };
}

const ofIdentity: ReadonlySet<string> = new Set([
  ...Object.keys(nodeReasons).filter((code) => isRejection(code as NodeReasonCode)),
  ...[
    "identity_revoked_or_fenced",
    "node_agent_auth_failed",
    "cert_untrusted_by_ingress",
    "recovery_token_missing",
  ],
  ...["recovery_enrollment_blocked", "recovery_refused"],
]);
