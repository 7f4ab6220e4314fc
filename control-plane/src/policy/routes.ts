// The policy over HTTP, for the platform's operator.

import { changePolicy, listPolicy, type PolicyKey, type PolicyValue } from "@holdfast/contracts/endpoints/policy";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { operatorRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { policyEntries, policyEntry } from "./keys.ts";
import { type PolicyRow, selectPolicy } from "./live.ts";

export function policyRoutes(api: ApiContext): void {
  const present = (key: PolicyKey, row: PolicyRow | undefined): PolicyValue => {
    const { declared } = policyEntry(key);
    const byDefault = String(api.policies.defaultOf(key));
    return {
      ...{ key, value: row?.value ?? byDefault, default_value: byDefault, setting: declared.env },
      ...{ allowed: declared.kind.allowed, help: declared.help },
      ...{ changed_at: row?.changed_at.toISOString() ?? null, reason: row?.reason ?? null },
    };
  };
  const rowOf = async (tx: Tx, key: PolicyKey) => (await selectPolicy(tx)).find((row) => row.key === key);

  operatorRoute(api, listPolicy, async ({ tx }) => {
    const rows = await selectPolicy(tx);
    return {
      items: policyEntries.map(({ key }) =>
        present(
          key,
          rows.find((row) => row.key === key),
        ),
      ),
    };
  });

  operatorRoute(api, changePolicy, async ({ tx, body, touched, afterCommit }) => {
    const { key, value, reason } = body;
    const { declared, isWeaker, apply } = policyEntry(key);
    // Whether it is weaker depends on what applies until then.
    await tx`LOCK TABLE policy_values IN SHARE ROW EXCLUSIVE MODE`;
    const from = present(key, await rowOf(tx, key)).value;
    const to = value ?? String(api.policies.defaultOf(key));
    const parsed = declared.kind.parse(to);
    if (parsed === undefined) {
      throw new ApiError("invalid_request", {
        message: `${JSON.stringify(to)} is not a value of ${key}.`,
        nextStep: `Use ${declared.kind.allowed}.`,
        details: { field: "value", allowed: declared.kind.allowed },
      });
    }
    const weaker = isWeaker(declared.kind.parse(from), parsed);
    if (weaker && reason === undefined)
      throw new ApiError("policy_reason_missing", { details: { key, from, to } });
    if (value === null) await tx`DELETE FROM policy_values WHERE key = ${key}`;
    else {
      await tx`
        INSERT INTO policy_values (key, value, reason) VALUES (${key}, ${String(parsed)}, ${reason ?? null})
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, reason = excluded.reason, changed_at = now()`;
    }
    await apply?.(tx, parsed);
    touched({ type: "policy", id: key }, { from, to, weaker, ...(reason === undefined ? {} : { reason }) });
    afterCommit(() => api.signals.publish("policy", [key]));
    return present(key, await rowOf(tx, key));
  });
}
