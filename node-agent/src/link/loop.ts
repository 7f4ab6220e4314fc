// The agent's exchange with the server: heartbeat, then a poll held until the next heartbeat is due, and
// again. decisions.ts decides what to do next; this file does it. Every failure is recorded
// before the next attempt, and only a stop ends the loop.

import type { Heartbeat, HeartbeatAnswer, Held, NodeStanding, TaskOffer } from "@holdfast/contracts/node/protocol";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import type { LinkCalls } from "./calls.ts";
import { type ClockSkew, certainSkewSeconds, clockSkew } from "./clock-skew.ts";
import {
  afterFailure,
  afterHeartbeat,
  afterHeldPoll,
  afterWait,
  atStart,
  type LinkState,
  nextStep,
} from "./decisions.ts";
import { type Classified, classifyError, LinkFailure } from "./failures.ts";
import type { HeartbeatOrder } from "./heartbeat-order.ts";

export type LinkStatus = {
  connected: boolean;
  /** As the server last reported it. */
  standing: NodeStanding | undefined;
  lastHeartbeatAt: number | undefined;
  problem: { reason: DiagnosticReason; detail: string } | undefined;
  skew: ClockSkew | undefined;
  /** The response times of the last heartbeats, in milliseconds. */
  roundTrips: number[];
  /** When the last round of the loop began, by the monotonic clock. */
  lastStepAt: number;
};

/** New trust and tokens, in the response to a heartbeat. */
export type Offered = Omit<HeartbeatAnswer, "server_time" | "node" | "cancel">;

export type LinkOptions = {
  /** Throws a HostProblem while this host has no usable identity. */
  client: () => Pick<LinkCalls, "heartbeat" | "wait">;
  /** Of all heartbeats of this process. */
  inOrder: HeartbeatOrder;
  /** Refreshes what the heartbeat reports. */
  beforeHeartbeat: () => void;
  /** Has no side effects. */
  heartbeat: () => Heartbeat;
  holding: () => Held[];
  room: () => number;
  /** How many of these were not known to be stopped. */
  cancel: (taskIds: readonly string[]) => number;
  /** Returns how many of these were not known. */
  offer: (offers: readonly TaskOffer[]) => number;
  /** Resolves when the results of everything that was offered are sent, or after that time. */
  resultsSent: (withinMs: number) => Promise<void>;
  /** After every heartbeat, also when it offers nothing. */
  learn: (offer: Offered) => void;
  /** The serial of the certificate in force; undefined while there is none. */
  serial: () => string | undefined;
  /** Before every pause. `serial`: of the certificate that was in force when the request began: another one may be by now. */
  onFailure: (
    failure: Classified,
    about: { correlationId: string | undefined; serial: string | undefined },
  ) => void;
  /** After the first success since a failure, and at the start. */
  onConnected: () => void;
  onStanding: (standing: NodeStanding) => void;
  onHeartbeat: (correlationId: string | undefined) => void;
  /** Between two heartbeats. */
  heartbeatMs?: number;
  /** Monotonic. */
  now?: () => number;
  random?: (() => number) | undefined;
};

export type Link = {
  /** Until it is stopped. */
  run(): Promise<void>;
  /** In parallel to requests in progress; never rejects. */
  heartbeatNow(): Promise<void>;
  /** Something has changed: interrupts the wait for tasks, sends a heartbeat and waits anew. */
  reportNow(): void;
  /** Retries at once: the settings that failed are no longer in use. */
  retryNow(): void;
  status(): LinkStatus;
  stop(): void;
};

/**
 * Results of short tasks are sent before the next poll, over the same connection: otherwise each would need a second
 * connection or wait behind a held poll. Longer tasks do not delay the poll. On a busy host more tasks count as longer,
 * which only costs a connection.
 */
const ANSWER_FIRST_MS = 5;
const ROUND_TRIPS_KEPT = 3;

export function createLink(options: LinkOptions): Link {
  // Monotonic, because a host's clock may be set back: nothing may wait an hour for that.
  const now = options.now ?? (() => performance.now());
  const random = options.random ?? Math.random;
  const stop = new AbortController();
  const status: LinkStatus = {
    connected: false,
    standing: undefined,
    lastHeartbeatAt: undefined,
    problem: undefined,
    skew: undefined,
    roundTrips: [],
    lastStepAt: now(),
  };
  let state: LinkState = { ...atStart, heartbeatMs: options.heartbeatMs ?? atStart.heartbeatMs };
  let beside: Promise<void> | undefined;
  let pausing = new AbortController();
  let interruption = new AbortController();

  const heartbeat = async () => {
    const sentAt = now();
    const client = options.client();
    options.beforeHeartbeat();
    const answer = await options.inOrder((after) =>
      client.heartbeat({ ...options.heartbeat(), ...after, holding: options.holding() }),
    );
    const { server_time, node, cancel, number: _, again, ...offer } = answer.body;
    status.skew = clockSkew({ ...answer, serverTime: Date.parse(server_time) });
    status.lastHeartbeatAt = answer.sentAt;
    status.roundTrips = [...status.roundTrips, now() - sentAt].slice(-ROUND_TRIPS_KEPT);
    state = afterHeartbeat(state, sentAt, random());
    if (again === true) beatNow();
    options.learn(offer);
    onAnswer(node);
    options.cancel(cancel);
    options.onHeartbeat(answer.correlationId);
  };

  const wait = async (seconds: number) => {
    const startedAt = now();
    const interrupted = interruption.signal;
    const signal = AbortSignal.any([stop.signal, interrupted]);
    const query = { seconds, room: options.room(), holding: options.holding(), signal };
    const answer = await options
      .client()
      .wait(query)
      .catch((error: unknown) => {
        if (interrupted.aborted) return undefined;
        state = afterHeldPoll(state, now() - startedAt);
        throw error;
      });
    if (answer === undefined) return;
    const { node, tasks, cancel, beat, again } = answer.body;
    const stopped = options.cancel(cancel);
    const taken = options.offer(tasks);
    const times = { requestedMs: seconds * 1000, tookMs: now() - startedAt };
    // Over a stream the server sends the standing when it has changed; as a response to a poll it is always there.
    const isNews = again === true || (answer.overStream === true && node !== undefined);
    state = afterWait(state, { empty: taken === 0 && stopped === 0 && !isNews, ...times }, now());
    if (beat) state = { ...state, heartbeatDueAt: now() };
    onAnswer(node ?? status.standing);
    if (tasks.length > 0 && !answer.overStream) await options.resultsSent(ANSWER_FIRST_MS);
  };

  const beatNow = () => {
    state = { ...state, heartbeatDueAt: 0 };
    interruption.abort();
    interruption = new AbortController();
  };

  const onAnswer = (standing: NodeStanding | undefined) => {
    if (!standing) return;
    const before = status.standing;
    status.standing = standing;
    if (before?.status !== standing.status || before.reason !== standing.reason) options.onStanding(standing);
    if (status.connected) return;
    status.connected = true;
    status.problem = undefined;
    options.onConnected();
  };

  const failed = (error: unknown, serial: string | undefined) => {
    const failure = classifyError(error);
    if (error instanceof LinkFailure && error.date) status.skew = clockSkew(error.date);
    status.connected = false;
    status.problem = { reason: failure.reason, detail: failure.detail };
    const correlationId = error instanceof LinkFailure ? error.correlationId : undefined;
    options.onFailure(failure, { correlationId, serial });
    state = afterFailure(state, failure, now(), random());
  };

  return {
    async run() {
      while (!stop.signal.aborted) {
        status.lastStepAt = now();
        const step = nextStep(state, status.lastStepAt);
        const serial = options.serial();
        try {
          if (step.do === "pause") await pause(step.ms, AbortSignal.any([stop.signal, pausing.signal]));
          else if (step.do === "heartbeat") await heartbeat();
          else await wait(step.seconds);
        } catch (error) {
          if (!stop.signal.aborted) failed(error, serial);
        }
      }
      status.connected = false;
    },
    heartbeatNow() {
      // Failures are handled by the loop: its own next request fails in the same way.
      beside ??= heartbeat()
        .catch(() => undefined)
        .finally(() => {
          beside = undefined;
        });
      return beside;
    },
    reportNow: beatNow,
    retryNow() {
      state = { ...state, pausedUntil: 0, heartbeatDueAt: 0 };
      pausing.abort();
      pausing = new AbortController();
    },
    status: () => status,
    stop: () => stop.abort(),
  };
}

export function skewSecondsOf(status: LinkStatus): number | undefined {
  return status.skew && certainSkewSeconds(status.skew);
}

/** The quickest of the last few, so that one late response does not count. Undefined until there are that many. */
export function quickestRoundTrip({ roundTrips }: LinkStatus): number | undefined {
  return roundTrips.length < ROUND_TRIPS_KEPT ? undefined : Math.min(...roundTrips);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal.aborted) done();
    else signal.addEventListener("abort", done);
  });
}
