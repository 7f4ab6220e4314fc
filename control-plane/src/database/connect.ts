// Connections to PostgreSQL. A pool is opened for one of the two runtime roles and never changes
// it; tenant queries run through `withOrg` only.

import { openSql, type Sql, type Tx } from "./sql/sql.ts";

export { isUnavailable } from "./sql/errors.ts";
export { rowsOf } from "./sql/rows.ts";
export type { Queryable, Sql, Tx } from "./sql/sql.ts";
export { ConstantSql, type Fragment } from "./sql/template.ts";

export type RuntimeRole = "holdfast_app" | "holdfast_system";

export const SCHEMA = "holdfast";

export type PoolOptions = {
  url: string;
  role: RuntimeRole;
  application: string;
  max: number;
  /** Of every session, beside the usual ones. */
  parameters?: Record<string, string>;
};

export function openPool(options: PoolOptions): Sql {
  return openSql({
    url: options.url,
    application: options.application,
    max: options.max,
    connectTimeoutSeconds: 5,
    parameters: {
      role: options.role,
      search_path: SCHEMA,
      statement_timeout: 30_000,
      idle_in_transaction_session_timeout: 30_000,
      ...options.parameters,
    },
  });
}

/** A single connection with the rights of its login: for migrations, and for those who administer the server. */
export function openOwner(url: string): Sql {
  return openSql({
    url,
    application: "holdfast-migrate",
    max: 1,
    connectTimeoutSeconds: 10,
    parameters: { search_path: SCHEMA },
  });
}

/**
 * Runs tenant queries in one transaction that row-level security confines to the organization. `oneMoment`: all of them see the
 * same moment, whatever is committed between them. Only for transactions that change nothing: others would be refused at times.
 */
export async function withOrg<T>(
  app: Sql,
  orgId: string,
  work: (tx: Tx) => Promise<T>,
  { oneMoment = false } = {},
): Promise<T> {
  const settings: Record<string, string> = { "holdfast.org_id": orgId };
  if (oneMoment) settings["transaction_isolation"] = "repeatable read";
  return app.begin(work, { settings });
}
