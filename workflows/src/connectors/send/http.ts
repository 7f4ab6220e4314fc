// Sends one HTTP request: to addresses that were checked, without following redirects (they would lead around the check, and take
// the secret along), within a time limit, and reads a response of limited size.

import { type ClientRequest, type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { always, parseOutsideUrl } from "@holdfast/kit/addresses";
import { ConnectorFailure, type HttpAnswer, type HttpMessage } from "../actions.ts";
import { explanationOf } from "../json-answer.ts";
import { connectionFailure, resolvedOrRefused } from "./failures.ts";
import type { Network } from "./network.ts";
import { failureOfStatus } from "./status.ts";

const MOST_REQUEST_BYTES = 512 * 1024;
const MOST_RESPONSE_BYTES = 256 * 1024;

export type SendOptions = { network: Network; signal: AbortSignal };
/** Removes the secret from what the service says, before any of it is cut. */
type Hiding = { hide: (answer: HttpAnswer) => HttpAnswer };

export async function sendHttp(
  message: HttpMessage,
  { network, signal, hide }: SendOptions & Hiding,
): Promise<HttpAnswer> {
  const { method, body } = message;
  const { url, addresses } = await resolvedOrRefused(async () => {
    const parsed = parseOutsideUrl(message.url);
    const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
    const encrypted = parsed.protocol === "https:";
    const advice = "Use https:// for a public address.";
    return { url: parsed, addresses: await network.addressesOf({ host, encrypted, advice }) };
  }, signal);
  if (body !== undefined && Buffer.byteLength(body) > MOST_REQUEST_BYTES) {
    throw new ConnectorFailure("input_invalid", `The request has more than ${MOST_REQUEST_BYTES} bytes.`);
  }
  let connected = false;
  let request: ClientRequest | undefined;
  try {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request = (url.protocol === "https:" ? overHttps : overHttp)(url, {
      ...{ method, lookup: always(addresses), agent: false, signal },
      headers: {
        "user-agent": "holdfast-connectors",
        ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        ...message.headers,
      },
    });
    request.once("error", reject);
    request.once("response", resolve);
    // Nothing of the request can have arrived before.
    const ready = url.protocol === "https:" ? "secureConnect" : "connect";
    request.once("socket", (socket) => socket.once(ready, () => (connected = true)));
    request.end(body);
    return judged(hide(await read(await promise)), message);
  } catch (error) {
    throw connectionFailure(error, { connected, signal });
  } finally {
    request?.destroy();
  }
}

function judged(answer: HttpAnswer, { anyStatus = false }: HttpMessage): HttpAnswer {
  const failure = anyStatus ? undefined : failureOfStatus(answer, Date.now());
  if (!failure) return answer;
  const said = explanationOf(answer.body);
  const { code, ...more } = failure;
  throw new ConnectorFailure(code, `Status ${answer.status}${said === "" ? "." : `: ${said}`}`, more);
}

async function read(response: IncomingMessage): Promise<HttpAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > MOST_RESPONSE_BYTES) {
      const detail = `It has more than ${MOST_RESPONSE_BYTES} bytes.`;
      throw new ConnectorFailure("response_too_large", detail, { outcomeKnown: false });
    }
  }
  const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(headers),
    body: Buffer.concat(chunks).toString("utf8").replaceAll("\0", "").toWellFormed(),
  };
}
