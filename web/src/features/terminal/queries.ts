// What the pages read about terminals. The keys are those that live.ts looks for.

import { listMyTerminals, listTerminals, type TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

export type TerminalsOf = { allocation_id: string } | { node_id: string } | { lease_id: string };

export function useTerminals(of: TerminalsOf) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { ...of, limit: 5 };
  return useListing<TerminalSession>({
    key: ["org", org.id, "terminals", "list", query],
    page: ({ cursor, signal }) => call(listTerminals, { query: { ...query, cursor }, signal }),
    refetchInterval,
  });
}

/** In all organizations. Changes in the one acted in are seen at once, others with the next look. */
export function useMyTerminals() {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "terminals", "list", { mine: true }],
    queryFn: ({ signal }) => call(listMyTerminals, { signal }),
    refetchInterval,
  });
}
