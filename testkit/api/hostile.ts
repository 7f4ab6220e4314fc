// Requests as no honest client makes them: any bytes over a socket of their own, and input that has the form of a
// contract except where it does not.

import { connect as connectTcp } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ErrorEnvelope } from "@holdfast/contracts/errors";
import { preflightHops } from "@holdfast/contracts/preflight/checks";
import { PREFLIGHT_FORMAT } from "@holdfast/contracts/preflight/report";
import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { z } from "zod";
import { anyCharacter } from "../schemas/any-character.ts";

export type RawRequest = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Buffer | undefined;
};
export type RawAnswer = { status: number; head: string; body: string };

/** One request over a connection of its own. Without `host` among the headers the listener's own is sent. */
export function askRaw(url: string, tls: ConnectionOptions, request: RawRequest): Promise<RawAnswer> {
  const { hostname, port, protocol } = new URL(url);
  const body = Buffer.from(request.body ?? "");
  const headers = {
    host: `${hostname}:${port}`,
    connection: "close",
    ...(request.body === undefined ? {} : { "content-length": String(body.length) }),
    ...request.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${request.method} ${request.path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
  return sendBytes(
    protocol === "https:" ? { ...tls, port: Number(port) } : Number(port),
    Buffer.concat([head, body]),
  );
}

/** Whatever comes back until the server closes. A number is a port without TLS. */
export async function sendBytes(to: number | ConnectionOptions, bytes: Buffer | string): Promise<RawAnswer> {
  const socket =
    typeof to === "number"
      ? connectTcp(to, "127.0.0.1")
      : connectTls({ host: "127.0.0.1", rejectUnauthorized: false, ...to });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise<void>((resolve) => {
    // A server that has answered may reset what is still being sent.
    socket.on("error", () => undefined);
    socket.once("close", () => resolve());
  });
  socket.write(bytes);
  await closed;
  const answer = Buffer.concat(chunks).toString();
  const end = answer.indexOf("\r\n\r\n");
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]),
    head: answer.slice(0, end),
    body: answer.slice(end + 4),
  };
}

/** The code of a refusal, which must be an envelope; undefined: it was not refused. */
export function codeOf({ status, head, body }: RawAnswer): string | undefined {
  if (status < 400) return undefined;
  const sent = JSON.parse(body) as { code: string };
  // Some endpoints send codes in capitals.
  const envelope = ErrorEnvelope.parse({ ...sent, code: sent.code.toLowerCase() });
  if (!/content-type: application\/json/i.test(head) || !head.includes(envelope.correlation_id)) {
    throw new Error(`an envelope without its headers: ${head}`);
  }
  return sent.code;
}

const nasty = [
  ...["", "\0", "a\0b", "\ud800", "\u202e", "'; DROP TABLE nodes; --", "%00", "../../etc/passwd", "{{7*7}}"],
  ...["x".repeat(300), "💥".repeat(40), "\r\nx: y", "__proto__", "NaN", "-1", "1e999", "null"],
];
const nastyText = fc.oneof(fc.constantFrom(...nasty), fc.string({ unit: anyCharacter, maxLength: 80 }));
const nastyValue: fc.Arbitrary<unknown> = fc.oneof(
  nastyText,
  fc.constantFrom(null, true, -1, 0, 2 ** 31, 2 ** 53, 1e308, [], {}, [[]], { a: { b: "\0" } }),
);

type Json = Record<string, unknown>;

/** Of the form that the schema wants; one value in ten is not. */
function nearlyRight(schema: Json): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 9, arbitrary: right(schema) }, { weight: 1, arbitrary: nastyValue });
}

/** Of the form that the schema wants in every part. */
const exactly = (schema: Json): fc.Arbitrary<unknown> => right(schema, exactly);

function right(schema: Json, part: (of: Json) => fc.Arbitrary<unknown> = nearlyRight): fc.Arbitrary<unknown> {
  if ("const" in schema) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...(schema["enum"] as unknown[]));
  const options = (schema["anyOf"] ?? schema["oneOf"]) as Json[] | undefined;
  if (options) return fc.oneof(...options.map(part));
  switch (schema["type"]) {
    case "object":
      return objectOf(schema, part);
    case "array":
      return fc.array(part((schema["items"] ?? {}) as Json), {
        minLength: Number(schema["minItems"] ?? 0),
        maxLength: Math.min(Number(schema["maxItems"] ?? 3), Number(schema["minItems"] ?? 0) + 3),
      });
    case "string":
      return textOf(schema);
    case "integer":
      return fc.integer({ min: numberIn(schema["minimum"], 0), max: numberIn(schema["maximum"], 1_000) });
    case "number":
      return fc.double({ min: 0, max: 1_000, noNaN: true });
    case "boolean":
      return fc.boolean();
    default:
      return nastyValue;
  }
}

const numberIn = (bound: unknown, otherwise: number) =>
  Math.min(Math.max(Number(bound ?? otherwise), -(2 ** 31)), 2 ** 31 - 1);

function objectOf(schema: Json, part = nearlyRight): fc.Arbitrary<unknown> {
  const fields = Object.entries((schema["properties"] ?? {}) as Record<string, Json>);
  const requiredKeys = (schema["required"] ?? []) as string[];
  return fc.record(Object.fromEntries(fields.map(([name, field]) => [name, part(field)])), {
    requiredKeys,
  });
}

function textOf(schema: Json): fc.Arbitrary<string> {
  const { format, pattern } = schema as { format?: string; pattern?: string };
  if (format === "uuid") return fc.uuid();
  if (format === "date-time")
    return fc
      .date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true })
      .map((date) => date.toISOString());
  if (format === "email") return fc.emailAddress();
  if (typeof pattern === "string") return fc.stringMatching(new RegExp(pattern));
  const minLength = Number(schema["minLength"] ?? 0);
  const maxLength = Math.min(Number(schema["maxLength"] ?? 100), minLength + 60);
  // A schema that changes its text first does not say what form it wants then.
  const wellFormed = fc.constantFrom("someone@example.com", "018f0000-0000-7000-8000-000000000000", "a-name");
  return fc.oneof(
    { weight: 2, arbitrary: fc.string({ minLength, maxLength }) },
    { weight: 1, arbitrary: wellFormed },
  );
}

const schemaOf = (schema: z.ZodType): Json =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Json;

/** Of what an agent or a page would wait for, and does if it says nothing: the test does not. */
const noWaiting = { wait: "0", wait_seconds: "0" };

/** Requests for an endpoint, with ids that exist among those that do not. `known`: what a body says by this name. */
export function requestsFor(
  endpoint: Endpoint,
  { ids, known }: { ids: readonly string[]; known: Record<string, string> },
): fc.Arbitrary<RawRequest> {
  const segment = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...ids) },
    { weight: 2, arbitrary: fc.uuid() },
    {
      weight: 3,
      arbitrary: fc.constantFrom("%00", "%", "%zz", "%c3%28", "..", "x".repeat(101), "y".repeat(9_000)),
    },
    { weight: 1, arbitrary: nastyText.map((text) => encodeURIComponent(text.toWellFormed())) },
  );
  const names = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const querySchema = endpoint.query ? schemaOf(endpoint.query) : {};
  const held = Object.entries(noWaiting).filter(([name]) => name in ((querySchema["properties"] ?? {}) as Json));
  const query = fc.oneof(
    { weight: 4, arbitrary: objectOf(querySchema) },
    { weight: 1, arbitrary: fc.dictionary(nastyText, nastyText, { maxKeys: 2 }) },
  );
  const json = (endpoint.body ? nearlyRight(schemaOf(endpoint.body)) : nastyValue).map((value) =>
    JSON.stringify(value, (key, field: unknown) => (typeof field === "string" ? (known[key] ?? field) : field)),
  );
  const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
  const body = fc.oneof({ weight: 9, arbitrary: json }, { weight: 1, arbitrary: bytes });
  return fc
    .record({
      segments: fc.tuple(...names.map(() => segment)),
      query,
      body,
      type: fc.constantFrom(...Array(8).fill("application/json"), "text/plain", "application/json; charset=\xff"),
      extra: fc.constantFrom(
        {},
        {},
        {},
        { "idempotency-key": "a b" },
        { "x-org-id": "%" },
        { "x-correlation-id": "\x01" },
      ),
    })
    .map(({ segments, query: wanted, body: sent, type, extra }) => {
      const path = names.reduce(
        (url, name, index) => url.replace(`{${name}}`, () => segments[index] ?? ""),
        endpoint.path,
      );
      const pairs = Object.entries({ ...(wanted as object), ...Object.fromEntries(held) }).map(
        ([name, value]) => [name.toWellFormed(), String(value).toWellFormed()] as [string, string],
      );
      const search = new URLSearchParams(pairs).toString();
      const withBody = endpoint.method !== "GET" ? { body: sent } : {};
      return {
        method: endpoint.method,
        path: search === "" ? path : `${path}?${search}`.slice(0, 12_000),
        headers: { ...(endpoint.method === "GET" ? {} : { "content-type": type }), ...extra } as Record<
          string,
          string
        >,
        ...withBody,
      };
    });
}

const nothing = {
  allocation_id: null,
  session_id: null,
  hostname: null,
  provider: null,
  private_ip: null,
  disk: null,
};
/** Bodies in which too many fields depend on each other. */
const rarelyFound: Record<string, unknown> = {
  addPreflightReport: {
    report: {
      ...{ format: PREFLIGHT_FORMAT, node_id: uuidv7(), correlation_id: "a-preflight", ...nothing },
      ...{ started_at: "2026-01-01T00:00:00.000Z", finished_at: "2026-01-01T00:00:00.000Z" },
      expected: {
        ...{ api_url: null, terminal_url: null, node_runtime_api_url: null, node_runtime_resolve_address: null },
        ...{ node_terminal_url: null, node_terminal_resolve_address: null, profile: null },
      },
      ...{ result: "incomplete", failed_hop: null, symptom_hop: null, classification: null, owner: null },
      ...{ ssh: null, browser_proof: null, compared_with: null },
      hops: preflightHops.map((hop) => ({
        ...{ hop, status: "not_run", why: "no_evidence", checked_from: null, detail: "", ms: 0, failure: null },
      })),
    },
  },
};

/** A body that the endpoint accepts, and says nothing in particular. */
export function acceptedBody({ name, body }: Endpoint): string | undefined {
  if (!body) return undefined;
  const known = rarelyFound[name];
  if (known !== undefined) return JSON.stringify(known);
  const found = fc
    .sample(exactly(schemaOf(body)), { seed: 1, numRuns: 1_000 })
    .find((value) => body.safeParse(JSON.parse(JSON.stringify(value))).success);
  if (found === undefined) throw new Error(`no body of ${name} was found by chance`);
  return JSON.stringify(found);
}
