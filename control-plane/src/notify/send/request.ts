// One HTTP request to somebody else's server: to the addresses that were checked, without following redirects, within a time
// limit. Of a response to a message, the status and the beginning of the body are read.

import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as overHttp,
} from "node:http";
import { request as overHttps } from "node:https";
import { always } from "@holdfast/kit/addresses";
import { version } from "@holdfast/service/version";
import { type Outcome, shortened } from "./outcome.ts";

const MOST_BYTES = 1_024;

export type OutsideRequest = {
  url: URL;
  /** In place of another resolution of the name. */
  addresses: readonly string[];
  method: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string;
  timeLimitMs: number;
};

export type OutsideResponse = { status: number; headers: IncomingHttpHeaders; body: string };

/** Throws when there is no response. */
export async function requestOutside(options: OutsideRequest): Promise<Outcome> {
  const { status, body } = await exchangeOutside(options, { mostBytes: MOST_BYTES });
  return outcomeOf(status, body);
}

/** Reads no more of the body than `mostBytes`. Throws when there is no response. */
export async function exchangeOutside(
  options: OutsideRequest,
  { mostBytes }: { mostBytes: number },
): Promise<OutsideResponse> {
  const { url, addresses, method, body, timeLimitMs } = options;
  const { promise, resolve, reject } = Promise.withResolvers<OutsideResponse>();
  const send = url.protocol === "https:" ? overHttps : overHttp;
  const request: ClientRequest = send(url, {
    method,
    headers: {
      "user-agent": `holdfast/${version}`,
      ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
      ...options.headers,
    },
    lookup: always(addresses),
    // No connection is kept for a request that may be the only one in weeks.
    agent: false,
    signal: AbortSignal.timeout(timeLimitMs),
  });
  request.once("error", reject);
  request.once("response", (response) => {
    const { statusCode: status = 0, headers } = response;
    beginningOf(response, mostBytes).then((text) => resolve({ status, headers, body: text }), reject);
  });
  request.end(body);
  return promise.finally(() => request.destroy());
}

function outcomeOf(status: number, text: string): Outcome {
  const delivered = status >= 200 && status < 300;
  const redirect = status >= 300 && status < 400 ? " (redirects are not followed)" : "";
  return { delivered, answer: shortened(`${status}${redirect} ${text}`) };
}

async function beginningOf(response: IncomingMessage, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes >= mostBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, mostBytes).toString("utf8");
}
