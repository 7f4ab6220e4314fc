// The step http.request, which the worker runs itself: to public addresses over https only, unless the operator allows others, as for
// webhooks (notify/send/addresses.ts). Redirects are not followed: they would lead around the check.

import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { always } from "@holdfast/kit/addresses";
import { AddressRefused, type Allowance, parseWebhookUrl, resolveAllowed } from "../../notify/send/addresses.ts";
import type { StepOutcome } from "./step.ts";

const MOST_BYTES = 512 * 1024;

export type HttpStep = {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: unknown;
  idempotencyKey: string;
  timeLimitMs: number;
};

/** Any response is an output, with its status; the workflow decides by it. Only what got no response fails. */
export async function requestHttp(step: HttpStep, allowance: Allowance): Promise<StepOutcome> {
  let url: URL;
  let addresses: string[];
  try {
    url = parseWebhookUrl(step.url);
    addresses = await resolveAllowed(url, allowance);
  } catch (error) {
    const code = error instanceof AddressRefused ? "address_refused" : "http_unreachable";
    return { failure: { code, message: (error as Error).message }, outcomeKnown: true };
  }
  try {
    return { output: await send(step, url, addresses) };
  } catch (error) {
    const { code = "http_failed", message, name } = error as Error & { code?: string };
    // A connection that was never made had no effect.
    return {
      failure: {
        code: "http_failed",
        message: wordsFor(name === "TimeoutError" ? name : code, step, url) ?? `${message}.`,
      },
      outcomeKnown: code === "ECONNREFUSED" || code === "EHOSTUNREACH",
    };
  }
}

function wordsFor(code: string, { timeLimitMs }: HttpStep, { host }: URL): string | undefined {
  switch (code) {
    case "ECONNREFUSED":
      return `${host} refused the connection (ECONNREFUSED). Check the URL, and that the service runs.`;
    case "EHOSTUNREACH":
      return `${host} cannot be reached from the worker (EHOSTUNREACH). Check the URL and the network.`;
    case "ECONNRESET":
      return `${host} closed the connection before it answered (ECONNRESET). The request may have had its effect.`;
    case "TimeoutError":
      return `${host} did not answer within ${timeLimitMs} ms. The request may have had its effect. The timeout of the step can be longer.`;
    default:
      return undefined;
  }
}

async function send(step: HttpStep, url: URL, addresses: readonly string[]): Promise<object> {
  const isText = typeof step.body === "string";
  const body = step.body === undefined ? undefined : isText ? (step.body as string) : JSON.stringify(step.body);
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  const request = (url.protocol === "https:" ? overHttps : overHttp)(url, {
    method: step.method,
    headers: {
      "idempotency-key": step.idempotencyKey,
      ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
      ...(body === undefined || isText ? {} : { "content-type": "application/json" }),
      ...step.headers,
    },
    lookup: always(addresses),
    agent: false,
    signal: AbortSignal.timeout(step.timeLimitMs),
  });
  request.once("error", reject);
  request.once("response", (response) => read(response).then(resolve, reject));
  request.end(body);
  return promise.finally(() => request.destroy());
}

async function read(response: IncomingMessage): Promise<object> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > MOST_BYTES) throw new Error(`The response has more than ${MOST_BYTES} bytes.`);
  }
  const text = Buffer.concat(chunks).toString("utf8").replaceAll("\0", "").toWellFormed();
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
  );
  return {
    status: response.statusCode ?? 0,
    headers,
    body: /json/.test(headers["content-type"] ?? "") ? json(text) : text,
  };
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
