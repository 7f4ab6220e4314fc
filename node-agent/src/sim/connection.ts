// One TLS connection with one request at a time, with as little memory and work as possible: thousands of
// them share a process. The server's responses are read as HTTP/1.1 with a content-length, which is all that it
// sends; failures have the codes of the link.

import type { IncomingHttpHeaders } from "node:http";
import { connect, type LookupFunction } from "node:net";
import { type SecureContext, connect as secure, type TLSSocket } from "node:tls";
import { checkApiIdentity } from "../link/api-identity.ts";

export type Place = { host: string; port: number; lookup: LookupFunction };

export type RawAnswer = { status: number; headers: IncomingHttpHeaders; text: string };

export type Connection = {
  /** Rejects with the error of the socket or the timeout. */
  exchange(request: { text: string; timeoutMs: number; signal?: AbortSignal }): Promise<RawAnswer>;
  close(): void;
};

const CONNECT_TIMEOUT_MS = 10_000;
const HEAD_END = "\r\n\r\n";

type Pending = { resolve(answer: RawAnswer): void; reject(error: Error): void };

export function openConnection(options: {
  place: Place;
  secureContext: SecureContext;
  /** To be resumed. */
  session: Buffer | undefined;
  onSession(session: Buffer): void;
  onClosed(): void;
}): Connection {
  const { host, port, lookup } = options.place;
  const bare = connect({ host, port, lookup, noDelay: true });
  /** Only once connected: while a server is down, TLS contexts would be created for nothing. */
  let socket: TLSSocket | undefined;
  /** Of the first request. */
  let unsent: string | undefined;
  let pending: Pending | undefined;
  let received: Buffer | undefined;
  let failure: Error | undefined;
  const deadline: NodeJS.Timeout | undefined = setTimeout(
    () => fail(coded("CONNECT_TIMEOUT", `no connection within ${CONNECT_TIMEOUT_MS} ms`)),
    CONNECT_TIMEOUT_MS,
  );

  const settle = (): Pending | undefined => {
    const one = pending;
    pending = undefined;
    return one;
  };
  const fail = (error: Error) => {
    clearTimeout(deadline);
    if (failure) return;
    failure = error;
    (socket ?? bare).destroy();
    options.onClosed();
    settle()?.reject(error);
  };

  const ended = () => fail(coded("ECONNRESET", "socket hang up"));
  bare.once("error", fail);
  bare.once("close", ended);
  bare.once("connect", () => {
    const { secureContext, session, onSession } = options;
    const checkServerIdentity = checkApiIdentity;
    socket = secure({ socket: bare, host, secureContext, checkServerIdentity, ...(session ? { session } : {}) });
    socket.once("secureConnect", () => clearTimeout(deadline));
    socket.on("session", onSession);
    socket.once("error", fail);
    socket.once("close", ended);
    socket.on("data", read);
    if (unsent !== undefined) socket.write(unsent);
    unsent = undefined;
  });
  const read = (part: Buffer) => {
    received = received ? Buffer.concat([received, part]) : part;
    const answer = readAnswerIn(received);
    if (answer === "unreadable") return fail(coded("HPE_UNREADABLE", "the answer is not one of this API"));
    if (answer === undefined) return;
    received = undefined;
    settle()?.resolve(answer);
  };

  return {
    exchange: ({ text, timeoutMs, signal }) =>
      new Promise((resolve, reject) => {
        if (failure) return reject(failure);
        const abort = () => fail(coded("ABORT_ERR", "the request was aborted"));
        const timer = setTimeout(
          () => fail(coded("NO_ANSWER_IN_TIME", `no answer within ${timeoutMs} ms`)),
          timeoutMs,
        );
        const end = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", abort);
        };
        pending = {
          resolve(answer) {
            end();
            resolve(answer);
          },
          reject(error) {
            end();
            reject(error);
          },
        };
        signal?.addEventListener("abort", abort);
        if (socket) socket.write(text);
        else unsent = text;
      }),
    close() {
      fail(coded("ABORT_ERR", "the connection was closed here"));
    },
  };
}

/** Undefined: incomplete. */
function readAnswerIn(received: Buffer): RawAnswer | "unreadable" | undefined {
  const end = received.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const head = received.toString("latin1", 0, end);
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1];
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (status === undefined || length === undefined) return "unreadable";
  const from = end + HEAD_END.length;
  const to = from + Number(length);
  if (received.length < to) return undefined;
  const text = received.toString("utf8", from, to);
  return { status: Number(status), headers: status === "200" ? lastOne(head) : headersIn(head), text };
}

const none: IncomingHttpHeaders = {};
const closing: IncomingHttpHeaders = { connection: "close" };

/** All that matters of a successful response. */
function lastOne(head: string): IncomingHttpHeaders {
  return /\r\nconnection: close/i.test(head) ? closing : none;
}

function headersIn(head: string): IncomingHttpHeaders {
  const lines = head.split("\r\n").slice(1);
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
