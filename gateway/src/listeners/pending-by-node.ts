// Limits how many streams of one node are being admitted at a time: after a restart an agent connects all of its streams
// at once, and each needs a request to the api.

import { ApiError } from "@holdfast/contracts/errors";

const MOST_PENDING = 256;

export type PendingByNode = { run<T>(nodeId: string, admit: () => Promise<T>): Promise<T> };

export function pendingByNode(most = MOST_PENDING): PendingByNode {
  const counts = new Map<string, number>();
  return {
    async run(nodeId, admit) {
      const before = counts.get(nodeId) ?? 0;
      if (before >= most) throw new ApiError("rate_limit_exceeded", { headers: { "retry-after": "1" } });
      counts.set(nodeId, before + 1);
      try {
        return await admit();
      } finally {
        const left = (counts.get(nodeId) ?? 1) - 1;
        if (left === 0) counts.delete(nodeId);
        else counts.set(nodeId, left);
      }
    },
  };
}
