// Sends an agent's calls over a stream, or as requests of their own where a stream cannot be opened. A stream that breaks is
// replaced at once; one that the server asks to leave, or whose identity was replaced, stays until the new one is open.

import type { Request, Wait, WaitResponse } from "../calls.ts";
import type { Answer } from "../exchange.ts";
import type { LinkFailure } from "../failures.ts";
import { type LinkTimes, usualTimes } from "../times.ts";
import { type AgentStream, openAgentStream, type StreamEnded } from "./agent-stream.ts";
import { afterCut, afterOutage, afterRefusal, afterSuccess, atFirst, mayStream } from "./choice.ts";
import { DialFailure, type Dialled } from "./dial.ts";
import { createInbox } from "./inbox.ts";

export type Transport = {
  send<T>(request: Request): Promise<Answer<T>>;
  wait(query: Wait): Promise<Answer<WaitResponse>>;
  /** The identity or the address has changed: opens another stream, then closes the present one. */
  renew(): void;
  /** Undefined: neither is in use yet. */
  used(): LinkInUse | undefined;
  close(): void;
};

/** `since`: when the stream was opened, or when the first request was sent without one. */
export type LinkInUse = { kind: "stream" | "poll"; since: number; localAddress?: string | undefined };

export type TransportOptions = {
  /** Requests of their own. */
  http: Pick<Transport, "send" | "wait">;
  /** Undefined: no stream is ever opened. */
  dial: (() => Promise<Dialled>) | undefined;
  times?: LinkTimes;
  /** Monotonic. */
  now?: () => number;
  random?: () => number;
};

/** Agents that the server asks to move do not all do so at once. */
const MOVE_WITHIN_MS = 2_000;
const MOVE_AGAIN_MS = 1_000;

export function createTransport(options: TransportOptions): Transport {
  const { dial, times = usualTimes, now = () => performance.now(), random = Math.random } = options;
  const inbox = createInbox();
  const pings = createPings(() => current?.ping());
  const heldPolls = countUnderWay(options.http.wait);
  let choice = dial ? atFirst : neverStreams;
  let current: AgentStream | undefined;
  let opening: Promise<AgentStream> | undefined;
  /** The stream before was cut; known to be so when the next one opens. */
  let cut: StreamEnded | undefined;
  let lostWith: LinkFailure | undefined;
  let moving: NodeJS.Timeout | undefined;
  let used: LinkInUse | undefined;
  /** This agent's own poll may arrive after the present stream was opened. */
  let polledBeside = false;
  let generation = 0;
  let closed = false;

  const open = (): Promise<AgentStream> => {
    opening ??= openNow()
      .catch((error: unknown) => {
        // Once for each attempt, whoever waits for it.
        if (!current && isOfStreamsOnly(error)) choice = afterRefusal(choice, now());
        else if (!current && used?.kind === "poll") choice = afterOutage(choice, now());
        throw error;
      })
      .finally(() => {
        opening = undefined;
      });
    return opening;
  };
  const openNow = async (): Promise<AgentStream> => {
    const mine = generation;
    if (!dial) throw closedHere();
    const dialled = await unlessOutdated(dial(), () => mine !== generation && !closed);
    if (!dialled) return openNow();
    const older = current;
    const stream = openAgentStream(dialled, {
      onOffer: inbox.offer,
      onStanding: inbox.standing,
      onCapacity: inbox.again,
      onMove: () => moveSoon(random() * MOVE_WITHIN_MS),
      onBeat: () => inbox.wantHeartbeat(true),
      onClosed: (ended) => onClosed(stream, ended),
    });
    if (closed || mine !== generation) {
      stream.close();
      // With the newer identity.
      if (!closed) return openNow();
      throw closedHere();
    }
    if (cut) choice = afterCut(choice, cut, now(), times);
    cut = undefined;
    lostWith = undefined;
    current = stream;
    polledBeside = heldPolls.underWay();
    used = { kind: "stream", since: Date.now(), localAddress: dialled.below.localAddress };
    older?.retire();
    pings.every(choice.pingMs);
    inbox.wantHeartbeat(true);
    return stream;
  };

  const onClosed = (stream: AgentStream, ended: StreamEnded) => {
    if (stream !== current) return;
    current = undefined;
    pings.stop();
    if (ended.livedMs > RELIABLE_MS) choice = afterSuccess(choice);
    const isSuperseded = !ended.failure && !closed;
    // By this agent's own poll, which was sent first and arrived last: the server holds it, and another stream ends it.
    if (isSuperseded && polledBeside) open().catch(() => undefined);
    // By a copy of this process. Both polling, they do not keep displacing each other.
    else if (isSuperseded) choice = afterRefusal(choice, now());
    cut = ended.failure?.failure.kind === "no_answer" ? ended : undefined;
    lostWith = ended.failure;
    inbox.wake();
  };

  const moveSoon = (ms: number) => {
    clearTimeout(moving);
    moving = setTimeout(() => {
      if (!current?.isOpen() || closed) return;
      // The present one is still served; if there is no other server yet, it will be closed in time.
      open().catch(() => moveSoon(MOVE_AGAIN_MS * (1 + random())));
    }, ms).unref();
  };

  /** Undefined: by a request of its own. */
  const present = async (): Promise<AgentStream | undefined> => {
    if (current?.isOpen()) return current;
    if (!mayStream(choice, now())) return undefined;
    // While polls work, a stream is tried beside them.
    if (used?.kind === "poll") {
      open().catch(() => undefined);
      return undefined;
    }
    try {
      return await open();
    } catch (error) {
      // Other failures concern every request.
      if (isOfStreamsOnly(error)) return undefined;
      throw error;
    }
  };
  const polls = () => {
    if (used?.kind !== "poll") used = { kind: "poll", since: Date.now() };
    polledBeside = true;
    return { send: options.http.send, wait: heldPolls.call };
  };

  return {
    async send<T>(request: Request) {
      const stream = await present();
      const answer = await (stream ? stream.call<T>(request) : polls().send<T>(request));
      if (!stream) used = withAddress(used, answer);
      // A heartbeat, in particular: the server knows about this stream.
      else if (request.call === "sendHeartbeat") inbox.wantHeartbeat(false);
      return answer;
    },
    async wait(query) {
      const sentAt = Date.now();
      const stream = await present();
      if (!stream) return polls().wait(query);
      stream.declare(query);
      if (inbox.isEmpty()) await inbox.next(query.seconds, query.signal);
      if (inbox.isEmpty() && !current?.isOpen()) {
        const before = lostWith;
        if (before && before.failure.kind === "answer") throw before;
        // Once, at once: a restarted server, or a proxy that cut a silent connection. Throws what is really wrong.
        await present();
        inbox.wantHeartbeat(true);
      }
      return { body: inbox.take(), sentAt, receivedAt: Date.now(), overStream: true };
    },
    renew() {
      generation += 1;
      if (current) moveSoon(0);
    },
    used: () => used,
    close() {
      closed = true;
      pings.stop();
      clearTimeout(moving);
      current?.close();
      current = undefined;
      inbox.wake();
    },
  };
}

/** Undefined: it failed with an older identity, about which nothing has to be known any more. */
function unlessOutdated(dialling: Promise<Dialled>, isOutdated: () => boolean): Promise<Dialled | undefined> {
  return dialling.catch((error: unknown) => {
    if (isOutdated()) return undefined;
    throw error;
  });
}

function createPings(ping: () => void) {
  let timer: NodeJS.Timeout | undefined;
  const stop = () => clearInterval(timer);
  return {
    stop,
    every(ms: number | undefined) {
      stop();
      if (ms !== undefined) timer = setInterval(ping, ms).unref();
    },
  };
}

function countUnderWay<A, R>(call: (argument: A) => Promise<R>) {
  let count = 0;
  return {
    underWay: () => count > 0,
    async call(argument: A): Promise<R> {
      count += 1;
      try {
        return await call(argument);
      } finally {
        count -= 1;
      }
    },
  };
}

/** A stream that was opened meanwhile has its own. */
function withAddress(used: LinkInUse | undefined, { localAddress }: Answer<unknown>): LinkInUse | undefined {
  return used?.kind === "poll" ? { ...used, localAddress } : used;
}

/** A stream that lived longer than this is not being cut. */
const RELIABLE_MS = 120_000;

const neverStreams = { ...atFirst, pollUntil: Number.POSITIVE_INFINITY };

const notHere: ReadonlySet<string> = new Set(["route_not_found", "method_not_allowed", "invalid_request"]);

/** The server could be reached, and it or a proxy refused the stream: a request of its own shows whether that is all. */
function isOfStreamsOnly(error: unknown): boolean {
  if (!(error instanceof DialFailure) || !error.afterTls) return false;
  const { failure } = error;
  return failure.kind === "no_answer" || failure.code === undefined || notHere.has(failure.code);
}

function closedHere(): Error {
  return Object.assign(new Error("the link was closed here"), { code: "ABORT_ERR" });
}
