// What the actions of the connector http send.

import { type Given, type HttpAnswer, type HttpMessage, httpActions } from "../actions.ts";
import { basic, bearer } from "../authorization.ts";
import type contract from "./contract.ts";

type Shared = {
  url: string;
  headers?: Record<string, string> | undefined;
  auth?:
    | { scheme: "bearer" }
    | { scheme: "basic"; user: string }
    | { scheme: "header"; header: string }
    | undefined;
  anyStatus?: boolean | undefined;
};

export default httpActions<typeof contract>({
  get: { message: (input, given) => messageOf("GET", input, given), read: answerOf },
  request: {
    message(input, given) {
      const { method, text, json } = input;
      const body = json === undefined ? text : JSON.stringify(json);
      const type: Record<string, string> = json === undefined ? {} : { "content-type": "application/json" };
      const { headers, ...message } = messageOf(method, input, given);
      return { ...message, headers: { ...type, ...headers, "idempotency-key": given.idempotencyKey }, body };
    },
    read: answerOf,
  },
});

function messageOf(method: string, input: Shared, { secret }: Given): HttpMessage {
  const { url, headers = {}, auth = { scheme: "bearer" as const }, anyStatus = false } = input;
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { kind: "http", method, url, headers: { ...lower, ...credentials(auth, secret) }, anyStatus };
}

function credentials(auth: NonNullable<Shared["auth"]>, secret: string | undefined): Record<string, string> {
  if (secret === undefined) return {};
  switch (auth.scheme) {
    case "bearer":
      return bearer(secret);
    case "basic":
      return basic(auth.user, secret);
    case "header":
      return { [auth.header.toLowerCase()]: secret };
  }
}

function answerOf({ status, headers, body }: HttpAnswer) {
  return { status, headers, body: /\bjson\b/.test(headers["content-type"] ?? "") ? parsed(body) : body };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
