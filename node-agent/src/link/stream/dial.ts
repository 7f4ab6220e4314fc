// Opens the WebSocket of a stream with the node's certificate. A failure tells how far it got: what came before TLS was
// established concerns every request; what came after may be a proxy that does not pass on streams.

import type { IncomingMessage } from "node:http";
import { isIP, type LookupFunction } from "node:net";
import { connect, type SecureContext, type TLSSocket } from "node:tls";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { WebSocket } from "ws";
import { checkApiIdentity } from "../api-identity.ts";
import { followConnection, MOST_ANSWER_BYTES, readAnswer } from "../exchange.ts";
import { failureOf, LinkFailure } from "../failures.ts";

export type DialOptions = {
  /** Of the stream, with https. */
  url: URL;
  headers: Record<string, string>;
  secureContext: SecureContext;
  /** The serial of its certificate. */
  presented?: (() => string) | undefined;
  lookup: LookupFunction;
  /** To be resumed. */
  session: Buffer | undefined;
  onSession(session: Buffer): void;
};

export type Dialled = { socket: WebSocket; below: TLSSocket };

/** The stream could not be opened. */
export class DialFailure extends LinkFailure {
  /** TLS was established: the server, or a proxy in front of it, refused the stream. */
  readonly afterTls: boolean;

  constructor({ failure, correlationId, date }: LinkFailure, afterTls: boolean) {
    super(failure, { correlationId, ...(date ? { date } : {}) });
    this.afterTls = afterTls;
  }
}

const CONNECT_TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 10_000;
/** The kernel finds a dead connection after this and ten more seconds, without waking this process. */
const KEEPALIVE_MS = 25_000;

export async function dial(options: DialOptions): Promise<Dialled> {
  const { WebSocket } = await import("ws");
  const { url, lookup, secureContext, session } = options;
  const correlationId = uuidv7();
  const sentAt = Date.now();
  const way = followConnection(url);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  let below: TLSSocket | undefined;
  let secured = false;

  return new Promise((resolve, reject) => {
    const late = (code: string, message: string) => fail(Object.assign(new Error(message), { code }));
    let deadline = setTimeout(() => late(...way.stuck(CONNECT_TIMEOUT_MS)), CONNECT_TIMEOUT_MS);
    const createConnection = () => {
      below = connect({
        ...{ host, port: Number(url.port || 443), lookup, secureContext },
        ...(isIP(host) ? {} : { servername: host }),
        ...(session ? { session } : {}),
        checkServerIdentity: checkApiIdentity,
      });
      below.on("session", options.onSession);
      way.follow(below, () => {
        secured = true;
        clearTimeout(deadline);
        const text = `no answer within ${ANSWER_TIMEOUT_MS} ms`;
        deadline = setTimeout(() => late("NO_ANSWER_IN_TIME", text), ANSWER_TIMEOUT_MS);
      });
      return below;
    };
    const socket = new WebSocket(url.href.replace(/^https/, "wss"), {
      headers: { ...options.headers, [CORRELATION_HEADER]: correlationId },
      createConnection,
      perMessageDeflate: false,
      maxPayload: MOST_ANSWER_BYTES,
      // Masks keep old proxies from mistaking a page's frames for requests. There is no page here.
      generateMask: () => {},
    });
    const fail = (error: unknown) => {
      clearTimeout(deadline);
      socket.terminate();
      const failure = failureOf(error);
      const message = `${(error as Error).message}${way.led()}`;
      const explained =
        error instanceof LinkFailure
          ? error.of(correlationId)
          : new LinkFailure(failure.kind === "no_answer" ? { ...failure, message } : failure, { correlationId });
      reject(new DialFailure(explained, secured));
    };
    socket.on("error", fail);
    socket.once("unexpected-response", (_request, response: IncomingMessage) => {
      refusal(response, sentAt, options.presented).then(fail, fail);
    });
    socket.once("open", () => {
      clearTimeout(deadline);
      socket.off("error", fail);
      socket.on("error", () => undefined);
      if (!below) return;
      below.setKeepAlive(true, KEEPALIVE_MS);
      resolve({ socket, below });
    });
  });
}

/** The response instead of an upgrade. */
async function refusal(
  response: IncomingMessage,
  sentAt: number,
  presented: DialOptions["presented"],
): Promise<unknown> {
  let text = "";
  for await (const part of response.setEncoding("utf8")) {
    text += part;
    if (text.length > LONGEST_REFUSAL) break;
  }
  const { statusCode: status = 0, headers } = response;
  try {
    readAnswer({ status, headers, text }, { sentAt, receivedAt: Date.now() }, presented);
  } catch (error) {
    return error;
  }
  // A server that does not know streams, or not this API.
  return new LinkFailure({ kind: "answer", status, code: undefined, excerpt: "no stream at this address" });
}
const LONGEST_REFUSAL = 64 * 1024;
