// One HTTP request and its JSON response, on node:https alone. Everything is bounded: time to connect,
// time to respond, size of the response. Every error becomes a LinkFailure.

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import https from "node:https";
import { isIP, type Socket } from "node:net";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";
import { RECEIVED_SERIAL } from "@holdfast/contracts/node/limits";
import { uuidv7 } from "@holdfast/kit/uuid";
import { http } from "../http-module.ts";
import { failureOf, LinkFailure } from "./failures.ts";

export type Ask = {
  method: "GET" | "POST";
  url: URL;
  body?: unknown;
  headers?: Record<string, string>;
  /** Until the whole response has arrived, from the first byte sent. */
  timeoutMs: number;
  /** Until there is a connection; 10 seconds by default. */
  connectTimeoutMs?: number;
  /** TLS options and the pool of connections. */
  via: https.RequestOptions;
  /** The serial of the certificate that is presented. */
  presented?: (() => string) | undefined;
  signal?: AbortSignal;
};

type Times = { sentAt: number; receivedAt: number };
/** `date`: the server's clock, if the response contains it. `overStream`: there is no connection to wait for. */
export type Answer<T> = Times & {
  body: T;
  date?: number;
  correlationId?: string;
  overStream?: boolean;
  /** This host's end of the connection. */
  localAddress?: string | undefined;
};

const CONNECT_TIMEOUT_MS = 10_000;
/** 32 offers with their parameters are far smaller; a foreign page is cut off here. */
export const MOST_ANSWER_BYTES = 8 * 1024 * 1024;
const EXCERPT = 200;
const LOOKED_THROUGH = 8 * 1024;

export function exchange<T>(ask: Ask): Promise<Answer<T>> {
  return new Promise((resolve, reject) => {
    const sentAt = Date.now();
    // Set by the agent, so that a request without a response can be found in the server's log.
    const correlationId = uuidv7();
    const body = ask.body === undefined ? undefined : JSON.stringify(ask.body);
    const { request } = ask.url.protocol === "http:" ? http : https;
    const outgoing = request(ask.url, {
      ...ask.via,
      method: ask.method,
      signal: ask.signal,
      headers: {
        ...ask.headers,
        [CORRELATION_HEADER]: correlationId,
        accept: "application/json",
        ...(body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
      },
    });
    const late = (code: string, message: string) => outgoing.destroy(Object.assign(new Error(message), { code }));
    const way = followConnection(ask.url);
    let localAddress: string | undefined;
    const connectMs = ask.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    let deadline = setTimeout(() => late(...way.stuck(connectMs)), connectMs);
    const connected = () => {
      clearTimeout(deadline);
      deadline = setTimeout(
        () => late("NO_ANSWER_IN_TIME", `no answer within ${ask.timeoutMs} ms`),
        ask.timeoutMs,
      );
    };
    outgoing.once("socket", (socket) => {
      if (outgoing.reusedSocket) connected();
      else way.follow(socket, connected);
    });
    const fail = (error: unknown) => {
      clearTimeout(deadline);
      // A proxy in front of the server may respond without the id.
      if (error instanceof LinkFailure) return reject(error.of(correlationId));
      const failure = failureOf(error);
      const message = `${(error as Error).message}${way.led()}`;
      reject(new LinkFailure(failure.kind === "no_answer" ? { ...failure, message } : failure, { correlationId }));
    };
    outgoing.once("error", fail);
    outgoing.once("response", (incoming) => {
      // Before the connection is handed on to the next request, or closed.
      ({ localAddress } = incoming.socket);
      collect(incoming).then((text) => {
        clearTimeout(deadline);
        try {
          const receivedAt = Date.now();
          const { statusCode: status = 0, headers } = incoming;
          const answer = readAnswer<T>({ status, headers, text }, { sentAt, receivedAt }, ask.presented);
          resolve({ ...answer, correlationId, localAddress });
        } catch (error) {
          fail(error);
        }
      }, fail);
    });
    outgoing.end(body);
  });
}

/** The progress of a new connection, to report where it got stuck. */
export function followConnection({ hostname, protocol }: URL) {
  const host = hostname.replace(/^\[|\]$/g, "");
  const named = isIP(host) === 0;
  let stage: "lookup" | "connect" | "handshake" | "done" = named ? "lookup" : "connect";
  let address = host;
  const stuckAt = {
    lookup: ["LOOKUP_TIMEOUT", () => `the name ${host} was not resolved`],
    connect: ["CONNECT_TIMEOUT", () => `${address} took no connection`],
    handshake: ["TLS_TIMEOUT", () => `${address} took the connection and did not finish the TLS handshake`],
    done: ["CONNECT_TIMEOUT", () => "no connection"],
  } as const;
  return {
    follow(socket: Socket, connected: () => void) {
      socket.once("lookup", (error, found) => {
        if (error) return;
        stage = "connect";
        address = found;
      });
      socket.once("connect", () => {
        stage = "handshake";
      });
      socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
        stage = "done";
        connected();
      });
    },
    stuck(ms: number): [code: string, message: string] {
      const [code, what] = stuckAt[stage];
      return [code, `${what()} within ${ms} ms`];
    },
    /** The reader may notice that the address is wrong. */
    led: () => (named && (stage === "connect" || stage === "handshake") ? ` (${host} led to ${address})` : ""),
  };
}

async function collect(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of incoming) {
    size += (part as Buffer).length;
    if (size > MOST_ANSWER_BYTES) {
      throw Object.assign(new Error(`the response is larger than ${MOST_ANSWER_BYTES} bytes`), {
        code: "ANSWER_TOO_LARGE",
      });
    }
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts).toString();
}

/** The expected response, or a LinkFailure with what arrived instead. */
export function readAnswer<T>(
  { status, headers, text }: { status: number; headers: IncomingHttpHeaders; text: string },
  times: Times,
  presented?: () => string,
): Answer<T> {
  const value = parse(text);
  // The header has whole seconds: on average half of one has passed.
  const serverTime = Date.parse(headers.date ?? "") + 500;
  if (status >= 200 && status < 300 && typeof value === "object" && value !== null) {
    return { body: value as T, ...times, ...(Number.isNaN(serverTime) ? {} : { date: serverTime }) };
  }
  const { code, message, next_step, details } = (value ?? {}) as Record<string, unknown>;
  const own = typeof code === "string" && /^[a-z_]{1,64}$/.test(code);
  const correlationId = headers[CORRELATION_HEADER];
  throw new LinkFailure(
    {
      kind: "answer",
      status,
      code: own ? code : undefined,
      excerpt: own && typeof message === "string" ? message : excerptOf(text),
      nextStep: own && typeof next_step === "string" ? next_step : undefined,
      retryAfterSeconds: retryAfter(headers["retry-after"]),
      ...(own && presented ? receivedInstead(details, presented) : {}),
    },
    {
      correlationId: typeof correlationId === "string" ? correlationId : undefined,
      // A page from a proxy says nothing about the server's clock.
      date: own && !Number.isNaN(serverTime) ? { serverTime, ...times } : undefined,
    },
  );
}

/** Of a refusal that is about another certificate than the one presented, or about none. */
function receivedInstead(details: unknown, presented: () => string): { received?: string | null } {
  const received = (details as Record<string, unknown> | undefined)?.[RECEIVED_SERIAL];
  if (received === null) return { received };
  return typeof received === "string" && received !== presented() ? { received: received.slice(0, 64) } : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text of a page, without its markup. Only of its beginning: the time grows with the square of the length. */
function excerptOf(text: string): string {
  const words = text
    .slice(0, LOOKED_THROUGH)
    .replace(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>/gi, " ")
    .replace(/\s+/g, " ")
    .trim();
  return words === "" ? "an empty response" : words.slice(0, EXCERPT);
}

/** Seconds, or a date. */
export function retryAfter(header: string | undefined, now = Date.now()): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  const at = header.endsWith("GMT") ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.round((at - now) / 1000));
}
