// Terminals: a token for one connection to the gateway, and the record of the terminal. The streams themselves
// go through the gateway; see `terminal/frames.ts`.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { correlationIdForm } from "../headers.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { reasonFields } from "../public/reason-fields.ts";
import { clientFailureCodes } from "../reasons/terminal.ts";
import { chainSteps } from "../terminal/frames.ts";

export const terminalStates = ["opening", "open", "closed", "failed"] as const;
export const TerminalState = z.enum(terminalStates);
export type TerminalState = z.infer<typeof TerminalState>;

/** When each step of the chain was reached, as far as it was, and the correlation id it was reached under. */
const ReadinessChain = z.partialRecord(
  z.enum(chainSteps),
  z.strictObject({ at: Time, correlation_id: z.string() }),
);

export const TerminalSession = z.strictObject({
  id: Id,
  allocation_id: Id.nullable().describe("Null: it is the console of a VM."),
  lease_id: Id.nullable().describe("Of the VM whose console it is; null: it is at an allocation."),
  username: z.string().describe("Of the allocation's OS user; `console` at a VM."),
  node_id: Id,
  node_name: z.string(),
  state: TerminalState,
  /** Of the attempt that opened it; `failed` is set when the terminal has failed, also after it was ready. */
  chain: ReadinessChain,
  /** Why the last connection to it, or the terminal itself, was ended, as reported to the client. */
  failure: z
    .strictObject({
      code: z.string(),
      ...reasonFields,
      hop: z.string(),
      owner: z.string(),
      detail: z.string().nullable(),
      at: Time,
      correlation_id: z.string(),
    })
    .nullable(),
  task_id: Id.nullable(),
  opened_by: z.string(),
  correlation_id: z.string(),
  created_at: Time,
  attached: z
    .boolean()
    .describe("A client is connected. An open terminal without one is detached; its shell keeps running."),
  detached_at: Time.nullable().describe("Since when it is detached; null: it is attached, opening or ended."),
  ends_at: Time.nullable().describe(
    "When it ends automatically at the latest, unless a client attaches; null: it has ended.",
  ),
  ending: z.boolean().describe("It was asked to end, and its gateway has not confirmed that yet."),
  closed_at: Time.nullable(),
  /** How its shell ended, if it did. */
  exit: z.strictObject({ code: z.int().nullable(), signal: z.string().nullable() }).nullable(),
});
export type TerminalSession = z.infer<typeof TerminalSession>;

const TokenWanted = z.strictObject({
  session_id: Id.optional().describe("An existing one of yours. Default: a new one."),
  offset: z.int().nonnegative().optional().describe("Output from this offset on; default: all that is kept."),
});

const NewTerminalToken = z.strictObject({
  token: z.string().describe("Shown once."),
  url: z.string().describe("ws:// or wss://, without the token."),
  session_id: Id,
  correlation_id: z.string(),
  expires_at: Time,
  /** Within so many seconds of connecting comes `ready` or an error. */
  deadline_seconds: z.number(),
});

const tokenErrors = [
  "terminal_token_mint_failed",
  "terminal_session_unknown",
  "terminal_gateway_missing",
] as const;

export const createTerminalToken = endpoint({
  name: "createTerminalToken",
  noun: "terminals",
  method: "POST",
  path: "/v1/allocations/{allocation_id}/terminal-tokens",
  summary: "Get a token for one terminal connection",
  description:
    "Valid for one WebSocket to `url` within a minute, with the subprotocols `holdfast.terminal.v1` and " +
    "`holdfast.token.<token>`. With `session_id` it attaches to an existing shell of yours.",
  access: { scope: "terminals:use" },
  action: "terminal.create_token",
  params: z.strictObject({ allocation_id: Id }),
  body: TokenWanted,
  answer: NewTerminalToken,
  errors: tokenErrors,
});

export const createConsoleToken = endpoint({
  name: "createConsoleToken",
  noun: "terminals",
  method: "POST",
  path: "/v1/leases/{lease_id}/console-tokens",
  summary: "Get a token for one connection to the serial console of a VM",
  description:
    "Used like a token for a terminal of an allocation. The connection begins with the end of the serial log. Everybody who may " +
    "write leases may open a console; all of them share the guest's serial port. The token needs the scope `terminals:use`, too.",
  access: { scope: "leases:write" },
  action: "terminal.create_console_token",
  params: z.strictObject({ lease_id: Id }),
  body: TokenWanted,
  answer: NewTerminalToken,
  errors: tokenErrors,
});

export const listTerminals = endpoint({
  name: "listTerminals",
  noun: "terminals",
  method: "GET",
  path: "/v1/terminals",
  summary: "List terminals, newest first",
  access: { scope: "allocations:read" },
  query: PageQuery.extend({
    allocation_id: Id.optional(),
    lease_id: Id.optional(),
    node_id: Id.optional(),
    state: TerminalState.optional(),
    correlation_id: z
      .string()
      .regex(correlationIdForm)
      .optional()
      .describe("As an error names it: of the terminal, of a connection to it, or of its failure."),
  }),
  answer: pageOf(TerminalSession),
});

export const MyTerminal = TerminalSession.extend({
  organization: z.strictObject({ id: Id, name: z.string() }),
});
export type MyTerminal = z.infer<typeof MyTerminal>;

export const listMyTerminals = endpoint({
  name: "listMyTerminals",
  noun: "terminals",
  method: "GET",
  path: "/v1/me/terminals",
  summary: "List your open terminals in all organizations, newest first",
  description: "Exactly those that count towards your limit. Detached ones count too, until they end.",
  access: "signed-in",
  answer: z.strictObject({
    items: z.array(MyTerminal),
    limit: z.int().describe("Maximum number of open terminals per person or token."),
  }),
});

export const getTerminal = endpoint({
  name: "getTerminal",
  noun: "terminals",
  method: "GET",
  path: "/v1/terminals/{terminal_id}",
  summary: "Read a terminal, or wait for its end",
  description: "With `wait_seconds` the response is sent when the terminal has ended, or after that time.",
  access: { scope: "allocations:read" },
  params: z.strictObject({ terminal_id: Id }),
  query: z.strictObject({ wait_seconds: z.coerce.number().int().min(0).max(25).default(0) }),
  answer: TerminalSession,
});

export const closeTerminal = endpoint({
  name: "closeTerminal",
  noun: "terminals",
  method: "POST",
  path: "/v1/terminals/{terminal_id}/close",
  summary: "End a terminal and its shell",
  description:
    "The response may be sent before the gateway has ended it: then `ending` is true. `GET /v1/terminals/{terminal_id}` " +
    "with `wait_seconds` waits for the end.",
  access: { scope: "terminals:use" },
  action: "terminal.close",
  params: z.strictObject({ terminal_id: Id }),
  answer: TerminalSession,
});

export const reportTerminalFailure = endpoint({
  name: "reportTerminalFailure",
  noun: "terminals",
  method: "POST",
  path: "/v1/terminals/{terminal_id}/failures",
  summary: "Report a failure that only the client could observe",
  access: { scope: "terminals:use" },
  action: "terminal.report",
  params: z.strictObject({ terminal_id: Id }),
  body: z.strictObject({ code: z.enum(clientFailureCodes), detail: Text.max(400).optional() }),
});
