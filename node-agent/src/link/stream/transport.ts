// Sends an agent's calls over a stream, or as requests of their own where a stream cannot be opened. A stream that breaks is
// replaced at once; one that the server asks to leave, or whose identity was replaced, stays until the new one is open.

import type { NodeStanding, TaskOffer } from "@holdfast/contracts/node/protocol";
import type { Request, Wait, WaitResponse } from "../calls.ts";
import type { Answer } from "../exchange.ts";
import type { LinkFailure } from "../failures.ts";
import { type AgentStream, openAgentStream, type StreamEnded } from "./agent-stream.ts";
import { afterCut, afterRefusal, afterSuccess, atFirst, mayStream } from "./choice.ts";
import { DialFailure, type Dialled } from "./dial.ts";

export type Transport = {
  send<T>(request: Request): Promise<Answer<T>>;
  wait(query: Wait): Promise<Answer<WaitResponse>>;
  /** The identity or the address has changed: opens another stream, then closes the present one. */
  renew(): void;
  /** Undefined: neither is in use yet. */
  kind(): "stream" | "poll" | undefined;
  close(): void;
};

export type TransportOptions = {
  /** Requests of their own. */
  http: Pick<Transport, "send" | "wait">;
  dial(): Promise<Dialled>;
  /** Monotonic. */
  now?: () => number;
  random?: () => number;
};

type Inbox = {
  tasks: TaskOffer[];
  cancel: string[];
  standing: NodeStanding | undefined;
  reopened: boolean;
  again: boolean;
};

/** Agents that the server asks to move do not all do so at once. */
const MOVE_WITHIN_MS = 2_000;
const MOVE_AGAIN_MS = 1_000;

export function createTransport(options: TransportOptions): Transport {
  const now = options.now ?? (() => performance.now());
  const random = options.random ?? Math.random;
  let choice = atFirst;
  let current: AgentStream | undefined;
  let opening: Promise<AgentStream> | undefined;
  /** The stream before was cut; known to be so when the next one opens. */
  let cut: StreamEnded | undefined;
  let lostWith: LinkFailure | undefined;
  let inbox = emptyInbox();
  let wake: (() => void) | undefined;
  let pings: NodeJS.Timeout | undefined;
  let moving: NodeJS.Timeout | undefined;
  let used: "stream" | "poll" | undefined;
  let generation = 0;
  let closed = false;

  const notify = () => {
    wake?.();
    wake = undefined;
  };

  const open = (): Promise<AgentStream> => {
    opening ??= openNow().finally(() => {
      opening = undefined;
    });
    return opening;
  };
  const openNow = async (): Promise<AgentStream> => {
    const mine = generation;
    const dialled = await options.dial();
    const older = current;
    const stream = openAgentStream(dialled, {
      onOffer(tasks, cancel) {
        inbox.tasks.push(...tasks);
        inbox.cancel.push(...cancel);
        notify();
      },
      onStanding(standing) {
        inbox.standing = standing;
        notify();
      },
      onCapacity() {
        inbox.again = true;
        notify();
      },
      onMove: () => moveSoon(random() * MOVE_WITHIN_MS),
      onClosed: (ended) => onClosed(stream, ended),
    });
    if (closed || mine !== generation) {
      stream.close();
      // With the newer identity.
      if (!closed) return openNow();
      throw closedHere();
    }
    if (cut) choice = afterCut(choice, cut, now());
    cut = undefined;
    lostWith = undefined;
    current = stream;
    inbox.reopened = true;
    older?.retire();
    pingRegularly();
    notify();
    return stream;
  };

  const onClosed = (stream: AgentStream, ended: StreamEnded) => {
    if (stream !== current) return;
    current = undefined;
    clearInterval(pings);
    if (ended.livedMs > RELIABLE_MS) choice = afterSuccess(choice);
    const isCut = ended.failure?.failure.kind === "no_answer";
    cut = isCut ? ended : undefined;
    lostWith = ended.failure;
    notify();
  };

  const pingRegularly = () => {
    clearInterval(pings);
    if (choice.pingMs === undefined) return;
    pings = setInterval(() => current?.ping(), choice.pingMs).unref();
  };

  const moveSoon = (ms: number) => {
    clearTimeout(moving);
    moving = setTimeout(() => {
      const before = current;
      if (!before?.isOpen() || closed) return;
      // The present one is still served; if there is no other server yet, it will be closed in time.
      open().catch(() => moveSoon(MOVE_AGAIN_MS * (1 + random())));
    }, ms).unref();
  };

  /** Undefined: by a request of its own. */
  const present = async (): Promise<AgentStream | undefined> => {
    if (current?.isOpen()) return current;
    if (!mayStream(choice, now())) return undefined;
    // While polls work, a stream is tried beside them.
    if (used === "poll") {
      void open().catch(fallBack);
      return undefined;
    }
    try {
      return await open();
    } catch (error) {
      fallBack(error);
      return undefined;
    }
  };
  /** Throws what concerns every request. */
  const fallBack = (error: unknown) => {
    if (used !== "poll" && !isOfStreamsOnly(error)) throw error;
    choice = afterRefusal(choice, now());
  };

  const nextIn = (seconds: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, seconds * 1000);
      signal.addEventListener("abort", done);
      wake = done;
      if (signal.aborted) done();
    });

  const takeInbox = (): WaitResponse => {
    const { tasks, cancel, standing, reopened, again } = inbox;
    inbox = emptyInbox();
    return { tasks, cancel, node: standing, reopened, again };
  };
  const isEmpty = () =>
    inbox.tasks.length + inbox.cancel.length === 0 &&
    inbox.standing === undefined &&
    !inbox.reopened &&
    !inbox.again;

  return {
    async send<T>(request: Request) {
      const stream = await present();
      used = stream ? "stream" : "poll";
      if (!stream) return options.http.send<T>(request);
      const answer = await stream.call<T>(request);
      // A heartbeat, in particular: the server knows about this stream.
      if (request.call === "sendHeartbeat") inbox.reopened = false;
      return answer;
    },
    async wait(query) {
      const sentAt = Date.now();
      const stream = await present();
      used = stream ? "stream" : "poll";
      if (!stream) return options.http.wait(query);
      stream.declare(query);
      if (isEmpty()) await nextIn(query.seconds, query.signal);
      if (isEmpty() && !current?.isOpen()) {
        const before = lostWith;
        if (before && before.failure.kind === "answer") throw before;
        // Once, at once: a restarted server, or a proxy that cut a silent connection. Throws what is really wrong.
        await present();
        inbox.reopened = true;
      }
      return { body: takeInbox(), sentAt, receivedAt: Date.now(), overStream: true };
    },
    renew() {
      generation += 1;
      if (current) moveSoon(0);
    },
    kind: () => used,
    close() {
      closed = true;
      clearInterval(pings);
      clearTimeout(moving);
      current?.close();
      current = undefined;
      notify();
    },
  };
}

/** A stream that lived longer than this is not being cut. */
const RELIABLE_MS = 120_000;

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

function emptyInbox(): Inbox {
  return { tasks: [], cancel: [], standing: undefined, reopened: false, again: false };
}
