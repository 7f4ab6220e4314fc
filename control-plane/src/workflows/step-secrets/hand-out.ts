// The api's side: hands out the secrets of steps that run now, sealed for the worker that asked. Which secret it is stands in the
// published document, and who may use it is decided as for a dispatch; the request only names run, node and attempt.

import type { Log } from "@holdfast/service/log";
import { readWorkflow } from "@holdfast/workflows/document/read";
import type { RunState } from "@holdfast/workflows/run/state";
import type { Sql } from "../../database/connect.ts";
import type { Keks } from "../../mechanisms/sealing/keks.ts";
import type { Signals } from "../../mechanisms/signals.ts";
import { secretsForSteps } from "../../secrets/use.ts";
import { sealFor } from "./sealed.ts";

type Wanted = {
  id: string;
  org_id: string;
  run_id: string;
  node: string;
  attempt: number;
  public_key: Buffer;
  status: string;
  cursor: RunState | null;
  user_id: string;
  workflow_id: string;
  correlation_id: string;
  source: string;
};
type Answer = { sealed: Buffer } | { refusal: string };

export async function handOutSecrets(options: {
  system: Sql;
  keks: Keks;
  signals: Signals;
  log: Log;
}): Promise<{ answered: number }> {
  const { system, signals, log } = options;
  // Of a worker that has died.
  await system`DELETE FROM workflow_step_secrets WHERE created_at < now() - interval '1 minute'`;
  // Of several apis, one answers each: the others skip what it has locked.
  const answered = await system.begin(async (tx) => {
    const wanted = await tx<Wanted[]>`
      SELECT s.id, s.org_id, s.run_id, s.node, s.attempt, s.public_key, r.status, r.cursor, r.user_id, r.workflow_id,
        r.correlation_id, v.source
      FROM workflow_step_secrets s
      JOIN workflow_runs r ON r.id = s.run_id AND r.org_id = s.org_id
      JOIN workflow_versions v ON v.workflow_id = r.workflow_id AND v.version = r.version
      WHERE s.sealed IS NULL AND s.refusal IS NULL ORDER BY s.created_at LIMIT 50 FOR UPDATE OF s SKIP LOCKED`;
    for (const one of wanted) {
      // One that cannot be answered must not keep those of other organizations waiting.
      const answer = await answerTo(options, one).catch((error: unknown): Answer => {
        const { run_id, correlation_id } = one;
        log.error({ err: error, run_id, correlation_id }, "a secret could not be handed out");
        return { refusal: "The api could not hand out the secret. Its log says why." };
      });
      const { sealed = null, refusal = null } = answer as { sealed?: Buffer; refusal?: string };
      await tx`UPDATE workflow_step_secrets SET sealed = ${sealed}, refusal = ${refusal} WHERE id = ${one.id}`;
    }
    return wanted.map(({ id }) => id);
  });
  signals.publish("step_secret", answered);
  return { answered: answered.length };
}

async function answerTo(
  { system, keks, log }: { system: Sql; keks: Keks; log: Log },
  wanted: Wanted,
): Promise<Answer> {
  const state = wanted.cursor?.nodes[wanted.node];
  if (wanted.status !== "running" || state?.status !== "started" || state.attempt !== wanted.attempt) {
    return { refusal: "The step does not run." };
  }
  const read = readWorkflow(wanted.source);
  const node = read.ok ? read.document.nodes[wanted.node] : undefined;
  const secretName = node && "secret" in node ? node.secret : undefined;
  if (node === undefined || secretName === undefined) return { refusal: "The step names no secret." };
  const used = await secretsForSteps({ system, keks, log })(
    {
      ...{ organizationId: wanted.org_id, requestedByUserId: wanted.user_id, runId: wanted.run_id },
      ...{
        workflowId: wanted.workflow_id,
        nodeId: wanted.node,
        nodeType: node.type,
        attemptCount: wanted.attempt,
      },
      ...{ kind: "connector.action", payload: {}, secretName },
    },
    { correlationId: wanted.correlation_id },
  );
  if (used === undefined) return { refusal: "The step names no secret." };
  if ("message" in used) return { refusal: `${used.message} ${used.nextStep}` };
  return { sealed: sealFor(wanted.public_key, wanted.id, used.value) };
}
