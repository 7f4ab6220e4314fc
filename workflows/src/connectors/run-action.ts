// Runs an action of a connector, or says what it would send. The same code in the worker, on agents and at the command line; what
// differs is the network that it is given. The secret leaves this file only inside of the request: it is removed from whatever
// comes back.

import { createHash } from "node:crypto";
import { type ConnectorFailureCode, connectorFailures } from "@holdfast/contracts/execution/connector-failures";
import { withoutValues } from "@holdfast/kit/redact";
import { type AnyActions, ConnectorFailure, type Message } from "./actions.ts";
import { builtIn } from "./built-in.generated.ts";
import type { CheckedAction } from "./checked-connector.ts";
import { sendHttp } from "./send/http.ts";
import { sendMail } from "./send/mail.ts";
import type { Network } from "./send/network.ts";

export type ActionRequest = {
  connector: string;
  action: string;
  input: unknown;
  secret?: string | undefined;
  idempotencyKey: string;
  network: Network;
  /** Aborted with a TimeoutError, or to cancel. */
  signal: AbortSignal;
};

export type ActionFailure = { code: ConnectorFailureCode; message: string };

export type ActionOutcome =
  | { output: unknown }
  | { failure: ActionFailure; retryable: boolean; retryAfterMs?: number; outcomeKnown: boolean };

/** Of the output, as JSON. */
export const MOST_OUTPUT_BYTES = 384 * 1024;

/** Never throws. */
export async function runAction(request: ActionRequest): Promise<ActionOutcome> {
  const hide = hiding(request.secret);
  try {
    const { code, checked, message, input } = await prepare(request);
    const output =
      "read" in code
        ? code.read((await send(message, { ...request, hide })) as never, input)
        : message.kind === "none" && message.output;
    const read = checked.output.safeParse(hide(output));
    if (!read.success) throw new ConnectorFailure("response_invalid", read.error.message, { outcomeKnown: false });
    if (Buffer.byteLength(JSON.stringify(read.data) ?? "") > MOST_OUTPUT_BYTES) {
      throw new ConnectorFailure("response_too_large", undefined, { outcomeKnown: false });
    }
    return { output: read.data };
  } catch (error) {
    return hide(outcomeOf(error));
  }
}

/** What would be sent, without secrets. */
export async function describeAction(
  request: Pick<ActionRequest, "connector" | "action" | "input" | "secret" | "idempotencyKey">,
): Promise<{ message: unknown } | { failure: ActionFailure }> {
  const hide = hiding(request.secret);
  try {
    const { message } = await prepare({ ...request, secret: request.secret ?? PLACEHOLDER });
    const { password: _hidden, ...shown } = { password: undefined, ...message };
    const headers = "headers" in shown ? { headers: withoutCredentials(shown.headers) } : {};
    return { message: hide({ ...shown, ...headers }) };
  } catch (error) {
    return { failure: hide(outcomeOf(error)).failure };
  }
}

/** In place of a secret that is not known. */
const PLACEHOLDER = "[secret]";

async function prepare({
  connector,
  action,
  input,
  secret,
  idempotencyKey,
}: Omit<ActionRequest, "network" | "signal">) {
  const known = Object.hasOwn(builtIn, connector) ? builtIn[connector] : undefined;
  if (!known) throw new ConnectorFailure("connector_unknown", JSON.stringify(connector));
  const checked = Object.hasOwn(known.contract.actions, action) ? known.contract.actions[action] : undefined;
  if (!checked)
    throw new ConnectorFailure("action_unknown", `${connector} has no action ${JSON.stringify(action)}.`);
  const read = checked.input.safeParse(input ?? {});
  if (!read.success) throw new ConnectorFailure("input_invalid", read.error.message);
  checkSecret(checked, secret);
  const code = ((await known.actions()).default as AnyActions)[action];
  if (!code) throw new Error(`connectors/${connector}/actions.ts has no ${action}`);
  return { checked, code, input: read.data, message: code.message(read.data, { secret, idempotencyKey }) };
}

/** A line break in a token would begin another header. Its value is not shown. */
function checkSecret({ secret: wanted }: CheckedAction, secret: string | undefined): void {
  if (wanted?.required && secret === undefined)
    throw new ConnectorFailure("secret_missing", `It has to be ${wanted.what}.`);
  if (secret !== undefined && /\p{Cc}/u.test(secret)) {
    throw new ConnectorFailure("secret_refused", "The secret has a line break or another control character.");
  }
}

async function send(message: Message, options: Parameters<typeof sendHttp>[1]) {
  switch (message.kind) {
    case "http":
      return sendHttp(message, options);
    case "mail":
      return sendMail(message, options);
    case "none":
      return message.output;
  }
}

function outcomeOf(error: unknown): Extract<ActionOutcome, { failure: unknown }> {
  if (!(error instanceof ConnectorFailure)) {
    // A defect of ours: its message may contain anything.
    return {
      failure: { code: "response_invalid", message: connectorFailures.response_invalid.message },
      retryable: false,
      outcomeKnown: false,
    };
  }
  const { code, message: detail, more } = error;
  const { message, nextStep, retryable } = connectorFailures[code];
  return {
    failure: { code, message: [message, detail, nextStep].filter((part) => part !== "").join(" ") },
    ...{ retryable, outcomeKnown: more.outcomeKnown ?? true },
    ...(more.retryAfterMs === undefined ? {} : { retryAfterMs: more.retryAfterMs }),
  };
}

function withoutCredentials(headers: Record<string, string>): Record<string, string> {
  const shown = Object.entries(headers).map(([name, value]) => [
    name,
    name.toLowerCase() === "authorization" ? "[redacted]" : value,
  ]);
  return Object.fromEntries(shown);
}

/** Removes the secret from all texts of a value, also where it is part of what was encoded together with a user name. */
function hiding(secret: string | undefined): <T>(value: T) => T {
  if (secret === undefined) return (value) => value;
  // In base64, a text looks different at each of three alignments; its first and last characters depend on what is around it.
  const aligned = [1, 2].map((before) =>
    Buffer.from(`${"\0".repeat(before)}${secret}`)
      .toString("base64")
      .slice(before + 1)
      .replace(/.?=*$/, ""),
  );
  const clean = withoutValues([secret, ...aligned]);
  const walk = (value: unknown): unknown => {
    if (typeof value === "string") return clean(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [clean(key), walk(one)]));
  };
  return <T>(value: T) => walk(value) as T;
}

/**
 * The same for all attempts of a step, because an attempt whose outcome is unknown may be repeated; another one when a person has
 * changed the input. `requestId`: run, node and attempt, with colons between them.
 */
export function idempotencyKeyOf(requestId: string, input: unknown): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(input ?? null))
    .digest("hex");
  return `${requestId.replace(/:\d+$/, "")}:${digest.slice(0, 16)}`;
}
