// The worker's side: asks for the secret of a step, and waits for the answer of any api. Only an api opens secrets.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql } from "../../database/connect.ts";
import type { Signals } from "../../mechanisms/signals.ts";
import { newRecipient, openWith, publicBytes } from "./sealed.ts";

/** Of a run that the worker has claimed, and an attempt that is in its cursor. */
export type WantedSecret = { orgId: string; runId: string; node: string; attempt: number };
export type AnsweredSecret = { value: string } | { refusal: string } | "late";
export type AskForSecret = (wanted: WantedSecret) => Promise<AnsweredSecret>;

type Answer = { sealed: Buffer | null; refusal: string | null };

const LONGEST_MS = 20_000;
/** In case a signal was lost. */
const LOOK_EVERY_MS = 500;

export function askForSecrets(
  { system, signals }: { system: Sql; signals: Signals },
  { longestMs = LONGEST_MS } = {},
): AskForSecret {
  return async ({ orgId, runId, node, attempt }) => {
    const id = uuidv7();
    const { publicKey, privateKey } = newRecipient();
    let wake = () => {};
    const unsubscribe = signals.subscribe("step_secret", (ids) => ids.includes(id) && wake());
    const until = performance.now() + longestMs;
    try {
      await system`
        INSERT INTO workflow_step_secrets (id, org_id, run_id, node, attempt, public_key)
        VALUES (${id}, ${orgId}, ${runId}, ${node}, ${attempt}, ${publicBytes(publicKey)})`;
      signals.publish("step_secret_wanted", [id]);
      for (;;) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, LOOK_EVERY_MS);
        });
        const [answer] = await system<
          Answer[]
        >`SELECT sealed, refusal FROM workflow_step_secrets WHERE id = ${id}`;
        if (answer?.sealed) return { value: openWith(privateKey, id, answer.sealed) };
        if (answer?.refusal) return { refusal: answer.refusal };
        if (!answer || performance.now() > until) return "late";
        await woken;
      }
    } finally {
      unsubscribe();
      await system`DELETE FROM workflow_step_secrets WHERE id = ${id}`.catch(() => undefined);
    }
  };
}
