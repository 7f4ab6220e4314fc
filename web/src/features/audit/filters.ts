// The audit page's filters as they stand in the address bar, so that a view can be shared, and as
// the endpoint takes them.

import type { QueryInputOf } from "@holdfast/contracts/endpoint";
import { AuditResult, type listAudit } from "@holdfast/contracts/endpoints/audit";

export const ranges = { "1h": 1, "24h": 24, "7d": 7 * 24, "30d": 30 * 24 } as const;
export type Range = keyof typeof ranges;

export type AuditFilters = {
  actor?: string;
  action?: string;
  target?: string;
  result?: AuditResult;
  correlation_id?: string;
  /** Absent: since the beginning. */
  range?: Range;
  /** All organizations and the platform itself, for operators. */
  scope?: "platform";
};

const textFilters = { actor: 254, action: 80, target: 254, correlation_id: 64 } as const;

/** Takes what is understood and drops the rest: an address is typed and truncated by people. */
export function auditFiltersFromSearch(search: Record<string, unknown>): AuditFilters {
  const filters: AuditFilters = {};
  for (const [name, longest] of Object.entries(textFilters) as [keyof typeof textFilters, number][]) {
    const value = search[name];
    if (typeof value === "string" && value.trim()) filters[name] = value.trim().slice(0, longest);
  }
  const result = AuditResult.safeParse(search["result"]);
  if (result.success) filters.result = result.data;
  const range = search["range"];
  if (typeof range === "string" && Object.hasOwn(ranges, range)) filters.range = range as Range;
  if (search["scope"] === "platform") filters.scope = "platform";
  return filters;
}

export function auditQuery(filters: AuditFilters, now: number): QueryInputOf<typeof listAudit> {
  const { range, scope: _, ...rest } = filters;
  if (!range) return rest;
  return { ...rest, since: new Date(now - ranges[range] * 3_600_000).toISOString() };
}

export function isFiltered(filters: AuditFilters): boolean {
  return Object.keys(filters).some((name) => name !== "scope");
}
