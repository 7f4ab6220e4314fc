// An endpoint as data: the server registers a handler for it, the client calls it, OpenAPI and the
// reference page are made from it. The shape of a request or a response is written here only.

import type { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import type { Scope } from "./public/permissions.ts";

/**
 * Who may call:
 * - `public`: anybody;
 * - `signed-in`: any user, token or local operator, in no particular organization;
 * - `operator`: the platform operator;
 * - `node`: an agent that presents its certificate, for its own node;
 * - `service`: another process of this installation that presents its service certificate;
 * - a scope: a member, token or operator acting in one organization with that scope.
 */
export type Access = "public" | "signed-in" | "operator" | "node" | "service" | { scope: Scope };

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

export type Endpoint<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> = {
  /** Unique; the OpenAPI operation id. */
  name: string;
  noun: string;
  method: Method;
  /** With `{param}` placeholders. */
  path: string;
  summary: string;
  description?: string;
  access: Access;
  /** What the audit calls it, `noun.verb`. Every endpoint that changes something has one. */
  action?: `${string}.${string}`;
  /** A create: takes an Idempotency-Key. */
  creates?: boolean;
  params?: Params;
  query?: Query;
  body?: Body;
  /** Absent: the answer is 204 without a body. */
  answer?: Answer;
  errors?: readonly ErrorCode[];
  /** The body is taken as it was sent, whatever its type and form. */
  rawBody?: boolean;
  /** What an unknown id in the path gets, where that is not `not_found`. */
  unknownId?: ErrorCode;
  /** Bytes of the body, where more than the listener's usual limit is needed. */
  bodyLimit?: number;
  /** Error codes in capitals, where callers of another system expect them. */
  upperCaseCodes?: boolean;
};

export function endpoint<
  Params extends z.ZodObject = z.ZodObject<Record<never, never>>,
  Query extends z.ZodObject = z.ZodObject<Record<never, never>>,
  Body extends z.ZodType = z.ZodUndefined,
  Answer extends z.ZodType = z.ZodUndefined,
>(declaration: Endpoint<Params, Query, Body, Answer>): Endpoint<Params, Query, Body, Answer> {
  return declaration;
}

export type ParamsOf<E> = E extends Endpoint<infer P, z.ZodObject, z.ZodType, z.ZodType> ? z.output<P> : never;
export type QueryOf<E> = E extends Endpoint<z.ZodObject, infer Q, z.ZodType, z.ZodType> ? z.output<Q> : never;
export type QueryInputOf<E> = E extends Endpoint<z.ZodObject, infer Q, z.ZodType, z.ZodType> ? z.input<Q> : never;
export type BodyOf<E> = E extends Endpoint<z.ZodObject, z.ZodObject, infer B, z.ZodType> ? z.output<B> : never;
export type BodyInputOf<E> = E extends Endpoint<z.ZodObject, z.ZodObject, infer B, z.ZodType> ? z.input<B> : never;
export type AnswerOf<E> = E extends Endpoint<z.ZodObject, z.ZodObject, z.ZodType, infer A> ? z.output<A> : never;

export function statusOf(endpoint: Endpoint): number {
  if (endpoint.answer === undefined) return 204;
  return endpoint.creates ? 201 : 200;
}

/** Fills `{param}` placeholders. */
export function pathOf(endpoint: Endpoint, params: Record<string, unknown> = {}): string {
  return endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
}
