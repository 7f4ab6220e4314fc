import { ApiError } from "@holdfast/contracts/errors";
import type { TerminalEvent } from "@holdfast/contracts/internal/endpoints";
import { createLog } from "@holdfast/service/log";
import { describe, expect, it } from "vitest";
import { ApiUnreachable } from "./client.ts";
import { createOutbox } from "./outbox.ts";

const log = createLog({ process: "gateway", level: "fatal" });
const event = (minute: number): TerminalEvent => ({
  type: "detached",
  at: `2026-01-01T00:${String(minute).padStart(2, "0")}:00Z`,
});

type Sent = { session: string; at: string[] };

function standIn(answers: (Error | undefined)[] = []) {
  const sent: Sent[] = [];
  const ask = async (_endpoint: unknown, request: unknown) => {
    const { params, body } = request as { params: { session_id: string }; body: { events: TerminalEvent[] } };
    const answer = answers.shift();
    if (answer) throw answer;
    sent.push({ session: params.session_id, at: body.events.map(({ at }) => at) });
    return undefined as never;
  };
  return { sent, api: { instanceId: "gateway-1", ask } };
}

describe("outbox", () => {
  it("TERM-08 tells events of one turn together, and later ones in order behind them", async () => {
    const { sent, api } = standIn([new ApiUnreachable("down"), new ApiUnreachable("down")]);
    const outbox = createOutbox({ api, log });
    outbox.report("a", event(1));
    outbox.report("a", event(2));
    outbox.report("b", event(3));
    await outbox.flush(10_000);
    outbox.report("a", event(4));
    await outbox.flush(10_000);
    expect(sent.filter(({ session }) => session === "a").flatMap(({ at }) => at)).toEqual(
      [1, 2, 4].map((n) => event(n).at),
    );
    expect(sent.filter(({ session }) => session === "b")).toHaveLength(1);
    expect(outbox.waiting()).toBe(0);
    outbox.stop();
  });

  it("TERM-08 does not repeat what the api refused", async () => {
    const { sent, api } = standIn([new ApiError("terminal_session_unknown")]);
    const outbox = createOutbox({ api, log });
    outbox.report("a", event(1));
    await outbox.flush(10_000);
    expect([sent, outbox.waiting()]).toEqual([[], 0]);
  });

  it("TERM-08 holds as much as there is room for, and gives up the oldest", async () => {
    const answers = Array.from({ length: 1 }, () => new ApiUnreachable("down"));
    const { sent, api } = standIn(answers);
    const outbox = createOutbox({ api, log, most: 3 });
    for (const minute of [1, 2, 3, 4, 5]) outbox.report("a", event(minute));
    expect(outbox.waiting()).toBe(3);
    await outbox.flush(10_000);
    expect(sent.flatMap(({ at }) => at)).toEqual([3, 4, 5].map((n) => event(n).at));
  });

  it("TERM-08 flushing waits only for a limited time", async () => {
    const { api } = standIn(Array.from({ length: 100 }, () => new ApiUnreachable("down")));
    const outbox = createOutbox({ api, log });
    outbox.report("a", event(1));
    await outbox.flush(1);
    expect(outbox.waiting()).toBe(1);
    outbox.stop();
  });
});
