// One HTTP request to somebody else's server: to the addresses that were checked, without following redirects, within a time
// limit. Of the response, the status and the beginning of the body are read.

import { type ClientRequest, type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
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

/** Throws when there is no response. */
export async function requestOutside(options: OutsideRequest): Promise<Outcome> {
  const { url, addresses, method, body, timeLimitMs } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
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
    beginningOf(response).then((text) => resolve(outcomeOf(response.statusCode ?? 0, text)), reject);
  });
  request.end(body);
  return promise.finally(() => request.destroy());
}

function outcomeOf(status: number, text: string): Outcome {
  const delivered = status >= 200 && status < 300;
  const redirect = status >= 300 && status < 400 ? " (redirects are not followed)" : "";
  return { delivered, answer: shortened(`${status}${redirect} ${text}`) };
}

async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes >= MOST_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("utf8");
}

function always(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all: wantsAll }, callback) => {
    const [first] = all;
    if (wantsAll) callback(null, all);
    else callback(null, first?.address ?? "", first?.family);
  };
}
