// What the payload of a request decides: where it can run, and whether its result has an exit code.

import type { DispatchBody } from "@holdfast/contracts/execution/dispatch";
import { AgentExecutePayload, ConnectorActionPayload } from "@holdfast/contracts/execution/payloads";
import { isDeeperThan } from "@holdfast/kit/json-depth";

/** Maximum depth: PostgreSQL could not read deeper JSON. */
export const MOST_LEVELS = 100;

export type ReadPayload = { shell: boolean; connector: string | null } | { message: string; nextStep: string };

/** With a message: the payload is refused. */
export function readPayload({ kind, payload }: Pick<DispatchBody, "kind" | "payload">): ReadPayload {
  if (isDeeperThan(payload, MOST_LEVELS))
    return { message: `The payload has more than ${MOST_LEVELS} levels.`, nextStep: "Send a flatter payload." };
  if (kind === "connector.action") {
    const read = ConnectorActionPayload.safeParse(payload);
    if (read.success) return { shell: false, connector: read.data.connectorId };
    return {
      message: "The payload of a connector.action needs connectorId and actionId.",
      nextStep: "Add the missing fields to the payload.",
    };
  }
  const read = AgentExecutePayload.safeParse(payload);
  if (read.success) return { shell: read.data.node.config?.task !== undefined, connector: null };
  const [problem] = read.error.issues;
  return {
    message: `The payload of an agent.execute is not valid: payload.${problem?.path.join(".")}: ${problem?.message}`,
    nextStep: "Send nodeId and node, with the config of the node as documented.",
  };
}
