// The key-encryption keys over HTTP, for the operator.

import { getKekStatus, rewrapKeys } from "@holdfast/contracts/endpoints/secrets";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../../api/context.ts";
import { operatorRoute } from "../../api/route.ts";
import type { Queryable } from "../../database/connect.ts";
import { KekMissing } from "../../mechanisms/sealing/keks.ts";
import { PROCESS_SILENT_AFTER } from "../../platform/presence.ts";
import { countSealed, rewrapSome, waitingOf } from "./rewrap.ts";
import { type ApiKeks, obstaclesTo } from "./standing.ts";

export function kekRoutes(api: ApiContext): void {
  const { keks } = api;

  operatorRoute(api, getKekStatus, async ({ tx }) => {
    const sealed = await countSealed(tx);
    const apis = await runningApis(tx);
    const obstacles = obstaclesTo(keks.current.id, { sealed, apis });
    return {
      ...{ current: keks.current.id, previous: keks.previous?.id ?? null, sealed, obstacles },
      apis: apis.map(({ hostname, kek_ids }) => ({ hostname, kek_ids: [...kek_ids] })),
      ...{ waiting: waitingOf(sealed, keks.current.id), unneeded: obstacles.length === 0 },
    };
  });

  operatorRoute(api, rewrapKeys, async ({ tx, body, touched }) => {
    const { id } = keks.current;
    if (body.to !== id) {
      throw new ApiError("kek_differs", {
        message: `The current KEK of the api that answered is "${id}", not "${body.to}".`,
      });
    }
    const rewrapped = await rewrapSome(tx, keks, body.limit).catch((error: unknown) => {
      if (!(error instanceof KekMissing)) throw error;
      throw new ApiError("kek_missing", { message: `A data key is ${error.message}.` });
    });
    touched({ type: "kek", name: id }, { rewrapped });
    return { rewrapped, waiting: waitingOf(await countSealed(tx), id) };
  });
}

async function runningApis(db: Queryable): Promise<ApiKeks[]> {
  return db<ApiKeks[]>`
    SELECT hostname, kek_ids FROM processes
    WHERE kind = 'api' AND last_seen_at > now() - ${PROCESS_SILENT_AFTER}::interval ORDER BY hostname, id`;
}
