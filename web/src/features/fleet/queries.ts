// The queries of the fleet page. The keys are those that live.ts invalidates; of the picture only changes are requested.

import {
  type Fleet,
  type FleetFilter,
  type FleetForecast,
  getFleet,
  getFleetForecast,
  getFleetPicture,
} from "@holdfast/contracts/endpoints/fleet";
import { listNodes, type Node } from "@holdfast/contracts/endpoints/nodes";
import { applyPicture, type PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { keepPreviousData, type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import type { listFilter } from "../nodes/filters.ts";

export function useFleet(filter: FleetFilter = {}): UseQueryResult<Fleet> {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "fleet", "summary", filter],
    queryFn: ({ signal }) => call(getFleet, { query: filter, signal }),
    placeholderData: keepPreviousData,
    refetchInterval,
  });
}

/** Changes by the hour: not with every change of the fleet. */
const FORECAST_EVERY_MS = 60_000;

export function useForecast(): UseQueryResult<FleetForecast> {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "forecast"],
    queryFn: ({ signal }) => call(getFleetForecast, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: FORECAST_EVERY_MS,
  });
}

type Picture = { version: string; nodes: readonly PictureNode[] };

export function useFleetPicture(filter: FleetFilter, { enabled }: { enabled: boolean }): UseQueryResult<Picture> {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const queryClient = useQueryClient();
  const queryKey = ["org", org.id, "fleet", "picture", filter];
  return useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      const known = queryClient.getQueryData<Picture>(queryKey);
      const picture = await call(getFleetPicture, { query: { ...filter, since: known?.version }, signal });
      const same = known && !picture.whole && picture.kind.length === 0 && picture.gone.length === 0;
      return {
        version: picture.version,
        nodes: same ? known.nodes : applyPicture(known?.nodes ?? [], picture),
      };
    },
    placeholderData: keepPreviousData,
    // Comparing ten thousand nodes field by field would take longer than drawing them.
    structuralSharing: false,
    refetchInterval,
    enabled,
  });
}

export const PAGE_SIZE = 50;

type NodePage = { items: Node[]; next_cursor: string | null; total: number };

export function useNodePage(
  filter: ReturnType<typeof listFilter>,
  cursor: string | undefined,
): UseQueryResult<NodePage> {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "nodes", "list", { ...filter, cursor }],
    queryFn: ({ signal }) =>
      call(listNodes, { query: { ...filter, order: "worst", limit: PAGE_SIZE, cursor }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval,
  });
}

/** The node of a name, for opening it: the picture carries no ids. */
export function useFindNode(): (name: string) => Promise<Node | undefined> {
  const { org, call } = useActing();
  const queryClient = useQueryClient();
  return (name) =>
    queryClient
      .fetchQuery({
        queryKey: ["org", org.id, "nodes", "list", { name }],
        queryFn: async ({ signal }) => {
          const { items } = await call(listNodes, { query: { name, state: "present" }, signal });
          return items[0] ?? null;
        },
      })
      .then((found) => found ?? undefined);
}
