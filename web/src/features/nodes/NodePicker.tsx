// Selects a node, searched on the server by name, host name, address or id.

import { listNodes, type Node } from "@holdfast/contracts/endpoints/nodes";
import type { ComponentProps } from "react";
import { FOUND_AT_ONCE, Picker } from "../../design/forms/Picker.tsx";
import { useActing } from "../../session.ts";
import { connectionMarks } from "./node-marks.ts";

/** Which nodes are offered. */
export type NodeChoice = { status: "active"; capability: string } | { state: "present" };

type NodePickerProps = { choice: NodeChoice } & Pick<
  ComponentProps<typeof Picker>,
  "label" | "hint" | "className" | "value" | "onChange" | "none"
>;

export function NodePicker({ choice, ...rest }: NodePickerProps) {
  const { org, call } = useActing();
  return (
    <Picker
      {...rest}
      noun="node"
      queryKey={["org", org.id, "nodes", "list", choice]}
      find={async (text, signal) => {
        const query = { ...choice, ...(text ? { search: text } : {}), limit: FOUND_AT_ONCE };
        const { items, total, next_cursor } = await call(listNodes, { query, signal });
        return { options: items.map(nodeOption), total, hasMore: next_cursor !== null };
      }}
    />
  );
}

export function nodeOption({ id, name, connection }: Pick<Node, "id" | "name" | "connection">) {
  return connection === "online"
    ? { id, label: name }
    : { id, label: name, detail: connectionMarks[connection].word };
}
