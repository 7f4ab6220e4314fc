// Secrets over HTTP. Values come in here and never go out.

import {
  deleteSecret,
  getSecret,
  listSecrets,
  MOST_SECRETS,
  rotateSecret,
  setSecret,
} from "@holdfast/contracts/endpoints/secrets";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { type OrgCall, orgRoute } from "../api/route.ts";
import { KekMissing, type Keks } from "../mechanisms/sealing/keks.ts";
import { nameOf } from "../people/actor.ts";
import { openSecret, sealSecret } from "./envelope.ts";
import {
  countSecrets,
  findSecret,
  insertSecret,
  lockSecrets,
  presentSecret,
  removeSecret,
  replaceKey,
  replaceValue,
  type SecretRow,
  selectSealed,
  selectSecrets,
  selectUse,
} from "./queries.ts";

type AnyCall = Pick<OrgCall<unknown>, "tx" | "org">;

export function secretRoutes(api: ApiContext): void {
  const { keks } = api;

  orgRoute(api, listSecrets, async (call) => ({
    items: (await selectSecrets(call.tx, { usableOnly: isMember(call) })).map(presentSecret),
  }));

  orgRoute(
    api,
    getSecret,
    async (call) => {
      const row = await secretOf(call, call.params.secret_id);
      return { ...presentSecret(row), used_by: await selectUse(call.tx, row.id) };
    },
    { oneMoment: true },
  );

  orgRoute(api, setSecret, async (call) => {
    const { tx, org, actor, body, touched } = call;
    await lockSecrets(tx, org.id);
    const known = await findSecret(tx, body.name);
    if (!known && (await countSecrets(tx)) >= MOST_SECRETS) throw tooMany();
    const identity = known
      ? { ...known, version: known.version + 1 }
      : { id: uuidv7(), org_id: org.id, version: 1 };
    const sealed = sealSecret(keks, identity, body.value);
    const change = { sealed, by: nameOf(actor), membersMayUse: body.members_may_use };
    if (known) await replaceValue(tx, identity, change);
    else await insertSecret(tx, identity, { ...change, name: body.name });
    const row = await secretOf(call, identity.id);
    touched(
      { type: "secret", id: row.id, name: row.name },
      { version: row.version, members_may_use: row.members_may_use },
    );
    return presentSecret(row);
  });

  orgRoute(api, rotateSecret, async (call) => {
    const { tx, org, actor, body, params, touched } = call;
    await lockSecrets(tx, org.id);
    const row = await secretOf(call, params.secret_id);
    if (body.value === undefined) await replaceDataKey(api, call, row);
    else {
      const identity = { ...row, version: row.version + 1 };
      const sealed = sealSecret(keks, identity, body.value);
      await replaceValue(tx, identity, { sealed, by: nameOf(actor), membersMayUse: undefined });
    }
    const after = await secretOf(call, row.id);
    touched(
      { type: "secret", id: row.id, name: row.name },
      { version: after.version, replaced: body.value === undefined ? "data key" : "value" },
    );
    return presentSecret(after);
  });

  orgRoute(api, deleteSecret, async (call) => {
    const row = await secretOf(call, call.params.secret_id);
    if (row.uses > 0 && call.query.force !== "true") {
      const used_by = await selectUse(call.tx, row.id);
      throw new ApiError("secret_in_use", {
        message: `${row.uses} executions have used the secret ${row.name}, the last one at ${row.last_used_at?.toISOString()}.`,
        details: { uses: row.uses, workflows: used_by.workflows.map(({ workflow_id }) => workflow_id) },
      });
    }
    await removeSecret(call.tx, row.id);
    call.touched({ type: "secret", id: row.id, name: row.name }, { version: row.version, uses: row.uses });
    return undefined;
  });
}

/** Members see what they may use, and nothing else. */
function isMember({ org }: Pick<AnyCall, "org">): boolean {
  return org.role === "member";
}

async function secretOf(call: AnyCall, id: string): Promise<SecretRow> {
  const [row] = await selectSecrets(call.tx, { id, usableOnly: isMember(call) });
  if (!row) throw new ApiError("not_found");
  return row;
}

/** The value is read by the role that can, and written in the transaction of the call, unless it was changed meanwhile. */
async function replaceDataKey(
  { system, keks }: { system: ApiContext["system"]; keks: Keks },
  { tx, org }: AnyCall,
  { id }: SecretRow,
): Promise<void> {
  const stored = await selectSealed(system, { id, orgId: org.id });
  if (!stored) throw new ApiError("not_found");
  const sealed = sealSecret(keks, stored, open(keks, stored));
  if (await replaceKey(tx, stored, sealed)) return;
  throw new ApiError("conflict", { message: "The secret was changed at the same time.", nextStep: "Try again." });
}

function open(
  keks: Keks,
  stored: Parameters<typeof openSecret>[1] & { sealed: Parameters<typeof openSecret>[2] },
): string {
  try {
    return openSecret(keks, stored, stored.sealed);
  } catch (error) {
    if (!(error instanceof KekMissing)) throw error;
    throw new ApiError("kek_missing", { message: `The secret is ${error.message}.` });
  }
}

function tooMany(): ApiError {
  return new ApiError("conflict", {
    message: `An organization has at most ${MOST_SECRETS} secrets.`,
    nextStep: "Delete secrets that are no longer used.",
  });
}
