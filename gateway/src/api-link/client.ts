// Requests to the api's internal listener: mutual TLS over persistent connections. A response of the api is a value or an
// ApiError with the api's code; no response is `ApiUnreachable`.

import type { IncomingMessage } from "node:http";
import { Agent, type AgentOptions, type RequestOptions, request as send } from "node:https";
import { text } from "node:stream/consumers";
import {
  type AnswerOf,
  type BodyInputOf,
  type Endpoint,
  type ParamsOf,
  pathOf,
} from "@holdfast/contracts/endpoint";
import { ApiError, type ErrorCode, ErrorEnvelope, errorCatalogue } from "@holdfast/contracts/errors";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";

export type Ask<E> = {
  params?: ParamsOf<E>;
  body?: BodyInputOf<E>;
  correlationId?: string;
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
};

export type Connections = {
  ask<E extends Endpoint>(endpoint: E, options: Ask<E>): Promise<AnswerOf<E>>;
  /** The raw response, for a stream. */
  open<E extends Endpoint>(endpoint: E, options: Ask<E>): Promise<IncomingMessage>;
  /** Closes the connections once no request is in progress. */
  retire(): void;
  close(): void;
};

/** No response from the api: it does not run, or cannot be reached. */
export class ApiUnreachable extends Error {
  override name = "ApiUnreachable";
}

const TIMEOUT_MS = 10_000;
/** Of several steps with payloads of a megabyte each. */
const MOST_ANSWER_BYTES = 64 * 1024 * 1024;

export function connect(baseUrl: string, tls: AgentOptions): Connections {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 16, scheduling: "lifo", ...tls });
  let underWay = 0;
  let retired = false;
  const closeWhenUnused = () => {
    if (retired && underWay === 0) agent.destroy();
  };

  const open = async (endpoint: Endpoint, options: Ask<Endpoint>): Promise<IncomingMessage> => {
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    underWay += 1;
    const timeout = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
    const response = await answerTo(`${baseUrl}${pathOf(endpoint, options.params)}`, body, {
      method: endpoint.method,
      agent,
      signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(options.correlationId === undefined ? {} : { [CORRELATION_HEADER]: options.correlationId }),
      },
      onEnd: () => {
        underWay -= 1;
        closeWhenUnused();
      },
    });
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    throw refusalOf(status, await readJson(response));
  };

  return {
    async ask(endpoint, options) {
      const response = await open(endpoint, options as Ask<Endpoint>);
      if (!endpoint.answer) {
        response.resume();
        return undefined as AnswerOf<typeof endpoint>;
      }
      const read = endpoint.answer.safeParse(await readJson(response));
      if (!read.success) throw new ApiUnreachable(`the api's answer to ${endpoint.name} is not of this version`);
      return read.data as AnswerOf<typeof endpoint>;
    },
    open: (endpoint, options) => open(endpoint, { timeoutMs: MOST_TIMEOUT_MS, ...(options as Ask<Endpoint>) }),
    retire() {
      retired = true;
      closeWhenUnused();
    },
    close: () => agent.destroy(),
  };
}

/** About 24 days: the longest possible timer. */
const MOST_TIMEOUT_MS = 2 ** 31 - 1;

function answerTo(
  url: string,
  body: string | undefined,
  { onEnd, ...options }: RequestOptions & { onEnd(): void },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = send(url, options, resolve);
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      reject(new ApiUnreachable(error.code ?? error.message, { cause: error }));
    });
    outgoing.once("close", onEnd);
    outgoing.end(body);
  });
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  try {
    if (Number(response.headers["content-length"] ?? 0) > MOST_ANSWER_BYTES) throw new Error("too large");
    return JSON.parse(await text(response));
  } catch (error) {
    response.destroy();
    throw new ApiUnreachable(`the api's answer could not be read: ${(error as Error).message}`);
  }
}

function refusalOf(status: number, answer: unknown): ApiError | ApiUnreachable {
  const read = ErrorEnvelope.safeParse(answer);
  if (!read.success || !Object.hasOwn(errorCatalogue, read.data.code)) {
    return new ApiUnreachable(`answered ${status} in a form that is not the api's`);
  }
  const { code, message, next_step, details } = read.data;
  return new ApiError(code as ErrorCode, { message, nextStep: next_step, details });
}
