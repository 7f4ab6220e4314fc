// One open stream to the server: calls and their answers, and what the server sends without being asked.

import type { Held, NodeStanding, TaskOffer } from "@holdfast/contracts/node/protocol";
import {
  type ApiFrame,
  type BeatFrame,
  type ErrorFrame,
  type MoveFrame,
  type StandingFrame,
  streamCloseCodes,
} from "@holdfast/contracts/node/stream";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Request } from "../calls.ts";
import type { Answer } from "../exchange.ts";
import { LinkFailure } from "../failures.ts";
import { afterOffer, afterVerdicts, correction, declared, undeclared } from "./capacity.ts";
import type { Dialled } from "./dial.ts";

export type StreamEvents = {
  onOffer(tasks: readonly TaskOffer[], cancel: readonly string[]): void;
  onStanding(standing: NodeStanding): void;
  /** What is declared now is taken into account: it could not be before. */
  onCapacity(): void;
  /** The server is about to stop: another stream should be opened. */
  onMove(): void;
  /** The server wants a heartbeat now. */
  onBeat(): void;
  onClosed(ended: StreamEnded): void;
};

export type StreamEnded = {
  /** Undefined: closed here, or superseded by a newer stream of this agent. */
  failure: LinkFailure | undefined;
  livedMs: number;
  /** How long nothing had come or gone. */
  silentMs: number;
};

export type AgentStream = {
  call<T>(request: Request): Promise<Answer<T>>;
  /** Corrects what the server believes, if necessary. */
  declare(actual: { room: number; holding: readonly Held[] }): void;
  isOpen(): boolean;
  /** No call is in progress, and it may be cut without a loss. */
  isIdle(): boolean;
  ping(): void;
  /** Closes it when the calls in progress are answered. */
  retire(): void;
  /** Closes it now; calls in progress fail. */
  close(): void;
};

type Pending = {
  resolve(answer: Answer<unknown>): void;
  reject(error: LinkFailure): void;
  sentAt: number;
  timer: NodeJS.Timeout;
  correlationId: string;
  call: string;
};

/** A stream that was closed without a reason. */
const CONNECTION_LOST = "ECONNRESET";
const CLOSE_NORMAL = 1000;
const RESULTS = "reportResults";

export function openAgentStream({ socket, below }: Dialled, events: StreamEvents): AgentStream {
  const openedAt = performance.now();
  const pending = new Map<number, Pending>();
  let ids = 0;
  let capacity = undeclared;
  let resultsUnderWay = 0;
  /** A correction waits until there are verdicts on all results. */
  let deferred = false;
  let retired = false;
  let ended = false;
  let refused: LinkFailure | undefined;
  let lastAt = openedAt;
  let bytesSeen = 0;

  const transmit = (frame: object) => {
    lastAt = performance.now();
    socket.send(JSON.stringify(frame));
  };
  const end = (failure: LinkFailure | undefined) => {
    if (ended) return;
    ended = true;
    const now = performance.now();
    for (const one of pending.values()) {
      clearTimeout(one.timer);
      one.reject((failure ?? lost("the connection was closed here")).of(one.correlationId));
    }
    pending.clear();
    events.onClosed({ failure, livedMs: now - openedAt, silentMs: now - lastAt });
  };
  const settle = (id: number): Pending | undefined => {
    const one = pending.get(id);
    pending.delete(id);
    clearTimeout(one?.timer);
    if (one?.call === RESULTS) {
      resultsUnderWay -= 1;
      if (deferred && resultsUnderWay === 0) events.onCapacity();
    }
    if (retired && pending.size === 0) close();
    return one;
  };
  const close = () => {
    socket.close(CLOSE_NORMAL);
    end(undefined);
  };
  const broken = (failure: LinkFailure) => {
    end(failure);
    socket.terminate();
  };

  const onAnswer = (one: Pending, body: unknown) => {
    if (typeof body !== "object" || body === null) {
      return one.reject(
        new LinkFailure({ kind: "answer", status: 200, code: undefined, excerpt: "not an object" }),
      );
    }
    const { verdicts } = body as { verdicts?: { task_id: string }[] };
    if (one.call === RESULTS && Array.isArray(verdicts)) {
      capacity = afterVerdicts(
        capacity,
        verdicts.map(({ task_id }) => task_id),
      );
    }
    const { sentAt, correlationId } = one;
    one.resolve({ body, sentAt, receivedAt: Date.now(), correlationId });
  };

  const onFrame = (frame: ApiFrame) => {
    if ("answer" in frame) {
      const one = settle(frame.id);
      if (one) onAnswer(one, frame.answer);
    } else if ("error" in frame) {
      const one = frame.id === undefined ? undefined : settle(frame.id);
      if (one) one.reject(failureIn(frame, one));
      else refused = failureIn(frame, { sentAt: Date.now(), correlationId: undefined });
    } else if ("offer" in frame) {
      const taskIds = frame.tasks.map(({ task_id }) => task_id);
      capacity = afterOffer(capacity, frame.offer, taskIds);
      events.onOffer(frame.tasks, frame.cancel);
    } else announce(frame, events);
  };

  socket.on("message", (data) => {
    lastAt = performance.now();
    bytesSeen = below.bytesRead;
    let frame: ApiFrame;
    try {
      frame = JSON.parse(data.toString()) as ApiFrame;
    } catch {
      return broken(new LinkFailure({ kind: "answer", status: 200, code: undefined, excerpt: "not a frame" }));
    }
    onFrame(frame);
  });
  socket.on("close", (code) => {
    if (code === streamCloseCodes.superseded) end(undefined);
    else if (refused) end(refused);
    else end(lost(code === streamCloseCodes.stopping ? "the server has stopped" : "the stream was cut"));
  });

  return {
    call<T>({ call, params, body, timeoutMs }: Request): Promise<Answer<T>> {
      return new Promise((resolve, reject) => {
        const correlationId = uuidv7();
        if (ended) return reject(lost("the stream is closed").of(correlationId));
        ids += 1;
        const id = ids;
        if (call === RESULTS) resultsUnderWay += 1;
        const late = () => {
          // Something has come in the meantime: the server is slow, and the stream works.
          const failure = new LinkFailure({
            ...{ kind: "no_answer", code: "NO_ANSWER_IN_TIME" },
            message: `no answer within ${timeoutMs} ms`,
          });
          settle(id)?.reject(failure.of(correlationId));
          if (below.bytesRead === bytesAtStart) broken(failure);
        };
        const bytesAtStart = below.bytesRead;
        pending.set(id, {
          resolve: resolve as Pending["resolve"],
          ...{ reject, correlationId, call, sentAt: Date.now() },
          timer: setTimeout(late, timeoutMs),
        });
        transmit({ id, call, ...(params ? { params } : {}), body, correlation_id: correlationId });
      });
    },
    declare(actual) {
      const correct = ended ? undefined : correction(capacity, actual);
      if (!correct) return;
      // A verdict that crosses the declaration would count twice.
      deferred = resultsUnderWay > 0;
      if (deferred) return;
      capacity = declared(correct);
      transmit({ capacity: correct });
    },
    isOpen: () => !ended && !retired,
    isIdle: () => pending.size === 0,
    ping() {
      if (ended) return;
      // Pongs count as signs of life, too.
      if (below.bytesRead !== bytesSeen) lastAt = performance.now();
      bytesSeen = below.bytesRead;
      socket.ping();
    },
    retire() {
      retired = true;
      if (pending.size === 0) close();
    },
    close,
  };
}

function announce(frame: StandingFrame | MoveFrame | BeatFrame, events: StreamEvents): void {
  if ("standing" in frame) events.onStanding(frame.standing);
  else if ("move" in frame) events.onMove();
  else if ("beat" in frame) events.onBeat();
}

function failureIn(
  { status, error, retry_after, at }: ErrorFrame,
  call: Pick<Pending, "sentAt"> & { correlationId: string | undefined },
) {
  const { code, message, next_step, correlation_id } = (error ?? {}) as Record<string, unknown>;
  return new LinkFailure(
    {
      kind: "answer",
      status,
      code: typeof code === "string" && /^[a-z_]{1,64}$/.test(code) ? code : undefined,
      excerpt: typeof message === "string" ? message.slice(0, 200) : "an error without a message",
      nextStep: typeof next_step === "string" ? next_step : undefined,
      retryAfterSeconds: retry_after,
    },
    {
      correlationId: typeof correlation_id === "string" ? correlation_id : call.correlationId,
      ...(typeof at === "number" ? { date: { serverTime: at, sentAt: call.sentAt, receivedAt: Date.now() } } : {}),
    },
  );
}

function lost(message: string): LinkFailure {
  return new LinkFailure({ kind: "no_answer", code: CONNECTION_LOST, message });
}
