// Which heartbeat was sent after the answer to which: the server learns from it that this process ran after that answer,
// and so whether another one uses the node's identity at the same time (control-plane/src/nodes/holders/lineage.ts).

import type { HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import type { Answer } from "./exchange.ts";

type Send = (after: { after?: number }) => Promise<Answer<HeartbeatAnswer>>;
export type HeartbeatOrder = (send: Send) => Promise<Answer<HeartbeatAnswer>>;

/** One for each process. */
export function createHeartbeatOrder(): HeartbeatOrder {
  let answered = 0;
  let underWay = false;
  return async (send) => {
    // Two at once would both follow the same answer, as those of two processes do.
    if (underWay) return send({});
    underWay = true;
    try {
      const answer = await send({ after: answered });
      const { number } = answer.body;
      if (Number.isSafeInteger(number)) answered = number ?? answered;
      return answer;
    } finally {
      underWay = false;
    }
  };
}
