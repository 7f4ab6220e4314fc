// What the pages read about nodes. The keys are those that live.ts looks for.

import {
  getNode,
  listNodeDiagnostics,
  listNodes,
  type Node,
  type NodeDetail,
} from "@holdfast/contracts/endpoints/nodes";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

/** Many at once: people look for a node by a part of its name, and the endpoint knows whole names only. */
const pageSize = 200;

export function useNodes() {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useListing<Node>({
    key: ["org", org.id, "nodes", "list"],
    page: ({ cursor, signal }) => call(listNodes, { query: { limit: pageSize, cursor }, signal }),
    refetchInterval,
  });
}

export function useNode(nodeId: string | undefined): UseQueryResult<NodeDetail> {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "nodes", nodeId],
    queryFn: ({ signal }) => call(getNode, { params: { node_id: nodeId ?? "" }, signal }),
    enabled: nodeId !== undefined,
    refetchInterval,
  });
}

export function useNodeDiagnostics(nodeId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "nodes", nodeId, "diagnostics"],
    queryFn: ({ signal }) => call(listNodeDiagnostics, { params: { node_id: nodeId }, signal }),
    refetchInterval,
  });
}
