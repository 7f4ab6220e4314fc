import type { HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import { expect, it } from "vitest";
import type { Answer } from "./exchange.ts";
import { createHeartbeatOrder } from "./heartbeat-order.ts";

const answerOf = (number: number | undefined) => ({ body: { number } }) as unknown as Answer<HeartbeatAnswer>;

it("ID-10 each heartbeat says which answer it follows; one that failed or ran beside another follows none", async () => {
  const inOrder = createHeartbeatOrder();
  const sent: unknown[] = [];
  const send = (answer: Promise<Answer<HeartbeatAnswer>>) =>
    inOrder((after) => {
      sent.push(after);
      return answer;
    });
  await send(Promise.resolve(answerOf(7)));
  await expect(send(Promise.reject(new Error("lost")))).rejects.toThrow("lost");
  const slow = Promise.withResolvers<Answer<HeartbeatAnswer>>();
  const first = send(slow.promise);
  await send(Promise.resolve(answerOf(undefined)));
  slow.resolve(answerOf(9));
  await first;
  // A server that does not number them.
  await send(Promise.resolve(answerOf(undefined)));
  await send(Promise.resolve(answerOf(10)));
  expect(sent).toEqual([{ after: 0 }, { after: 7 }, { after: 7 }, {}, { after: 9 }, { after: 9 }]);
});
