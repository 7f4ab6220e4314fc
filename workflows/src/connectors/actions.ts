// What actions are made of: pure functions from the input to what is to be sent, and from the response to the output. Only `send/`
// connects to anything, so that limits, guards and dry runs are the same for all connectors.

import type { ConnectorFailureCode } from "@holdfast/contracts/execution/connector-failures";
import type { z } from "zod";
import type { Connector } from "./connector.ts";

export type HttpMessage = {
  kind: "http";
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string | undefined;
  /** Any status is an answer that `read` gets; otherwise only those from 200 to 299. */
  anyStatus?: boolean;
};

export type MailMessage = {
  kind: "mail";
  server: { host: string; port: number; tls: "tls" | "starttls" | "none"; user?: string | undefined };
  password?: string | undefined;
  from: string;
  to: readonly string[];
  cc: readonly string[];
  subject: string;
  text: string;
  messageId: string;
};

/** Of an action that reaches nobody. */
type NoMessage = { kind: "none"; output: unknown };

export type Message = HttpMessage | MailMessage | NoMessage;

export type HttpAnswer = { status: number; headers: Record<string, string>; body: string };
export type MailAnswer = { accepted: string[]; rejected: string[]; messageId: string; response: string };

export type Given = {
  /** A placeholder in a dry run without one. */
  secret: string | undefined;
  /** The same for every attempt of a step with the same input. */
  idempotencyKey: string;
};

type More = { retryAfterMs?: number | undefined; outcomeKnown?: boolean };

/** Thrown by actions, and by what sends for them. Details never contain a header or a URL. */
export class ConnectorFailure extends Error {
  override name = "ConnectorFailure";
  readonly code: ConnectorFailureCode;
  readonly more: More;
  constructor(code: ConnectorFailureCode, detail = "", more: More = {}) {
    super(detail);
    this.code = code;
    this.more = more;
  }
}

type Speaking<Input, Output, Sent, Answer> = {
  message(input: Input, given: Given): Sent;
  read(answer: Answer, input: Input): Output;
};
type Quiet<Input> = { message(input: Input, given: Given): NoMessage };

type InputOf<C extends Connector, Name extends keyof C["actions"]> = z.output<C["actions"][Name]["input"]>;
type All<C extends Connector, Sent, Answer> = {
  [Name in keyof C["actions"]]: Speaking<InputOf<C, Name>, z.output<C["actions"][Name]["output"]>, Sent, Answer>;
};
type AllQuiet<C extends Connector> = { [Name in keyof C["actions"]]: Quiet<InputOf<C, Name>> };

// biome-ignore lint/suspicious/noExplicitAny: the only form that the code of every action is assignable to
export type AnyActions = Record<string, Speaking<any, any, Message, any> | Quiet<any>>;

/** Of a connector that speaks HTTP, sends mail, or reaches nobody. */
export const httpActions = <C extends Connector>(code: All<C, HttpMessage, HttpAnswer>) => code;
export const mailActions = <C extends Connector>(code: All<C, MailMessage, MailAnswer>) => code;
export const quietActions = <C extends Connector>(code: AllQuiet<C>) => code;
