// Two agents with the identity of one node. A restarted agent has a new instance id while its old connection may still be
// open, half dead; only when both answer the same challenge are there two of them.

import { randomBytes } from "node:crypto";
import type { OpenStream } from "./stream.ts";
import type { Twins } from "./uses.ts";

export type TwinWatch = {
  opened(stream: OpenStream): void;
  closed(stream: OpenStream): void;
  /** How many streams of the node are open here. */
  count(nodeId: string): number;
};

export function watchTwins(onTwins: (twins: Twins) => void): TwinWatch {
  const byNode = new Map<string, Set<OpenStream>>();

  const challenge = async (newer: OpenStream, older: OpenStream) => {
    const nonce = randomBytes(16);
    const answers = await Promise.all([older.challenge(nonce), newer.challenge(nonce)]);
    if (!answers.every(Boolean)) return;
    const { id: nodeId, orgId } = newer.node;
    onTwins({ nodeId, orgId, instances: [older.node, newer.node] });
  };

  return {
    count: (nodeId) => byNode.get(nodeId)?.size ?? 0,
    opened(stream) {
      const { id, instanceId } = stream.node;
      const own = byNode.get(id) ?? new Set();
      for (const other of own) if (other.node.instanceId !== instanceId) void challenge(stream, other);
      byNode.set(id, own.add(stream));
    },
    closed(stream) {
      const own = byNode.get(stream.node.id);
      own?.delete(stream);
      if (own?.size === 0) byNode.delete(stream.node.id);
    },
  };
}
