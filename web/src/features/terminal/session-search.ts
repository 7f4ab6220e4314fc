// Which shell a terminal's page shows, as it stands in the address bar.

import { Id } from "@holdfast/contracts/fields";

export function sessionFromSearch(search: Record<string, unknown>): { session?: string } {
  const session = Id.safeParse(search["session"]);
  return session.success ? { session: session.data } : {};
}
