// An environment of a terminal's client without a network: the test plays the api and the gateway. For fake timers.

import type { ServerFrame } from "@holdfast/contracts/terminal/frames";
import { vi } from "vitest";
import type { Environment, SocketEvents } from "../src/environment.ts";
import type { Failure } from "../src/failures.ts";
import type { Grant } from "../src/states.ts";

export type FakeSocket = {
  events: SocketEvents<Buffer>;
  protocols: string[];
  sent: (string | Buffer)[];
  isOpen: boolean;
  /** A frame from the gateway. */
  say(frame: ServerFrame): void;
  /** Input that was sent, without frames. */
  typed(): string;
};

export type FakeGateway = {
  environment: Environment<Buffer>;
  sockets: FakeSocket[];
  wanted: { shell: string | undefined; offset: number | undefined }[];
  reports: Failure[];
  /** Whether it answers at its address. */
  isReachable: boolean;
  /** The api rejects requests for tokens with it. */
  refusal: unknown;
  /** Opens the connection that the client waits for, and sends `ready`. */
  ready(options?: { offset?: number; from?: number; session?: string }): Promise<FakeSocket>;
};

export const grant: Grant = {
  token: "secret",
  url: "wss://gateway/v1/terminal",
  sessionId: "s1",
  correlationId: "c1",
  deadlineSeconds: 15,
};

export function fakeGateway(): FakeGateway {
  const sockets: FakeSocket[] = [];
  const gateway: FakeGateway = {
    sockets,
    wanted: [],
    reports: [],
    isReachable: true,
    refusal: undefined,
    environment: {
      async requestToken({ shell, offset }) {
        gateway.wanted.push({ shell, offset });
        if (gateway.refusal !== undefined) throw gateway.refusal;
        return grant;
      },
      openSocket(_url, protocols, events) {
        const socket = newSocket(protocols, events);
        sockets.push(socket);
        return {
          isOpen: () => socket.isOpen,
          send: (data) => void socket.sent.push(data),
          close: () => {
            socket.isOpen = false;
          },
        };
      },
      checkRoute: async () => ({ reachable: gateway.isReachable }),
      report: (_sessionId, failure) => void gateway.reports.push(failure),
      describeError: () => ({ message: "unreachable", action: "", retryable: true }),
    },
    async ready({ offset = 0, from = 0, session = "s1" } = {}) {
      await vi.advanceTimersByTimeAsync(0);
      const socket = sockets.at(-1);
      if (!socket) throw new Error("the client has opened no connection");
      socket.events.onOpen();
      const input = { attachment: sockets.length, from };
      socket.say({ type: "ready", session_id: session, offset, window: 1, replay: 0, input });
      return socket;
    },
  };
  return gateway;
}

function newSocket(protocols: string[], events: SocketEvents<Buffer>): FakeSocket {
  const socket: FakeSocket = {
    events,
    protocols,
    sent: [],
    isOpen: true,
    say: (frame) => events.onText(JSON.stringify(frame)),
    typed: () => Buffer.concat(socket.sent.filter((data) => typeof data !== "string")).toString(),
  };
  return socket;
}
