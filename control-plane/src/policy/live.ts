// The settings of a process with the stored values of the policy in their place. Whoever reads a setting when it is needed, and
// does not keep it, uses a change at once.

import type { PolicyKey } from "@holdfast/contracts/endpoints/policy";
import type { Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import type { Queryable, Sql } from "../database/connect.ts";
import { type allPolicySettings, policyEntries } from "./keys.ts";

export type PolicyRow = { key: string; value: string; changed_at: Date; reason: string | null };

export async function selectPolicy(db: Queryable): Promise<PolicyRow[]> {
  return db<PolicyRow[]>`SELECT key, value, changed_at, reason FROM policy_values`;
}

export type Policies = {
  /** As the environment has it. */
  defaultOf(key: PolicyKey): unknown;
  /** Reads the stored values again. Returns the keys whose value is another one now. */
  refresh(): Promise<PolicyKey[]>;
};

type Defaults = Values<typeof allPolicySettings>;

export async function openPolicies<All extends Defaults>(
  system: Sql,
  defaults: All,
  log: Log,
): Promise<Policies & { settings: All }> {
  let stored = new Map<PolicyKey, unknown>();
  const settings = { ...defaults };
  for (const { key, setting } of policyEntries) {
    Object.defineProperty(settings, setting, {
      enumerable: true,
      get: () => (stored.has(key) ? stored.get(key) : defaults[setting]),
    });
  }
  const refresh = async () => {
    const before = stored;
    stored = valuesIn(await selectPolicy(system), log);
    return policyEntries.map(({ key }) => key).filter((key) => before.get(key) !== stored.get(key));
  };
  await refresh();
  const defaultOf = (key: PolicyKey) => {
    const entry = policyEntries.find((one) => one.key === key);
    return entry && defaults[entry.setting];
  };
  return { settings, defaultOf, refresh };
}

/** What another version stored and this one does not understand is left out. */
function valuesIn(rows: readonly PolicyRow[], log: Log): Map<PolicyKey, unknown> {
  return new Map(
    policyEntries.flatMap(({ key, declared }): [PolicyKey, unknown][] => {
      const row = rows.find((one) => one.key === key);
      if (!row) return [];
      const value = declared.kind.parse(row.value);
      if (value === undefined)
        log.warn({ key, value: row.value }, "stored policy value is not valid; the default applies");
      return value === undefined ? [] : [[key, value]];
    }),
  );
}
