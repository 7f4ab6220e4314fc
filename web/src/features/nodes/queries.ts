// The queries about nodes. The keys are those that live.ts invalidates.

import { type Explanation, explainNode } from "@holdfast/contracts/endpoints/drift";
import {
  getNode,
  listNodeDiagnostics,
  listNodes,
  type Node,
  type NodeDetail,
} from "@holdfast/contracts/endpoints/nodes";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

/** The capabilities that allow an allocation: the agent creates users, or offers its own account. */
export const hostsUsers = "os_users,own_account";

/** The only node that an allocation can be made on, and how many there are. */
export function useUsableNodes(): { only: Node | undefined; total: number | undefined } {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { status: "active", capability: hostsUsers, limit: 2 } as const;
  const { data } = useQuery({
    queryKey: ["org", org.id, "nodes", "list", query],
    queryFn: ({ signal }) => call(listNodes, { query, signal }),
    refetchInterval,
  });
  return { only: data?.total === 1 ? data.items[0] : undefined, total: data?.total };
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

export function useExplanation(nodeId: string): UseQueryResult<Explanation> {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "nodes", nodeId, "explanation"],
    queryFn: ({ signal }) => call(explainNode, { params: { node_id: nodeId }, signal }),
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
