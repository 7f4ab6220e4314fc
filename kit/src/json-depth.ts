// How deep plain data is nested. Parsers of JSON call themselves for every level: some thousand
// levels, which cost their sender a few kilobytes, are more than PostgreSQL's stack can take.

/** Whether something lies more than `limit` levels deep. Looks no further than that. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  return Object.values(value).some((inner) => isDeeperThan(inner, limit - 1));
}
