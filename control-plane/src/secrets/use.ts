// A named secret for a step: the only place where a value is opened for somebody. Each opening is in the audit before the value is used.

import type { DispatchBody } from "@holdfast/contracts/execution/dispatch";
import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import { KekMissing, type Keks } from "../mechanisms/sealing/keks.ts";
import { openSecret } from "./envelope.ts";
import { selectUsable } from "./queries.ts";

export type UsedSecret = { id: string; version: number; value: string };
export type RefusedSecret = { message: string; nextStep: string };

/** Of a dispatch that names a secret; undefined: it names none. */
export type UseSecret = (
  body: DispatchBody,
  options: { correlationId: string },
) => Promise<UsedSecret | RefusedSecret | undefined>;

const dispatcher = systemActor("dispatch");

export function secretsForSteps({ system, keks, log }: { system: Sql; keks: Keks; log: Log }): UseSecret {
  return async (body, { correlationId }) => {
    const {
      organizationId: orgId,
      requestedByUserId: userId,
      secretName: name = null,
      secretId: id = null,
    } = body;
    if (name === null && id === null) return undefined;
    const stored = await selectUsable(system, { orgId, userId, name, id });
    if (!stored) return unknown(name === null ? `with the id ${id}` : JSON.stringify(name));
    let value: string;
    try {
      value = openSecret(keks, stored, stored.sealed);
    } catch (error) {
      log.error(
        { err: error, secret_id: stored.id, correlation_id: correlationId },
        "a secret could not be opened",
      );
      return closed(stored.name, error);
    }
    await recordAudit(system, log, {
      ...{ orgId, by: dispatcher, action: "secret.use", result: "allowed", correlationId },
      target: { type: "secret", id: stored.id, name: stored.name },
      details: {
        ...{ request_id: requestIdOf(body), workflow_id: body.workflowId, user_id: userId },
        version: stored.version,
      },
    });
    return { id: stored.id, version: stored.version, value };
  };
}

/** The same for one that does not exist, of another organization, and not for this person. */
function unknown(which: string): RefusedSecret {
  return {
    message: `The organization has no secret ${which} that requestedByUserId may use.`,
    nextStep:
      "Check the name with `holdfast secret list`, and that the user is an owner or admin of the organization, or that members may use the secret.",
  };
}

function closed(name: string, error: unknown): RefusedSecret {
  const why =
    error instanceof KekMissing
      ? `is ${error.message}`
      : "does not open: its row was changed, or belongs elsewhere";
  return {
    message: `The secret ${JSON.stringify(name)} ${why}.`,
    nextStep:
      "Ask the operator of the installation to run `holdfast secret rewrap --check`, or set the secret again.",
  };
}
