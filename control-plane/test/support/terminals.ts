// Terminals at the api, for tests: the gateway and the node are played by the test, over the real listeners.

import { CallError, type Client } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createTerminalToken, listTerminals, type TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import {
  awaitTerminalTask,
  claimTerminalToken,
  openTerminal,
  reportTerminalEvents,
  type TerminalEvent,
  type TerminalGrant,
} from "@holdfast/contracts/internal/endpoints";
import { beforeAll, beforeEach, expect } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../../testkit/api/api.ts";
import { enrollGateway, SERVICE_TOKEN, type TestGateway } from "../../../testkit/api/services.ts";
import { newPlace, type Place, type TestOwner } from "../../../testkit/api/terminals.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import type { Sql } from "../../src/database/connect.ts";

export let api: TestApi;
export let superuser: Sql;
export let system: Sql;
export let kelp: TestOrg;
export let other: TestOrg;
export let client: Client;
export let gateway: TestGateway;
export let place: Place;
export let owner: TestOwner;

/** Starts an api and enrolls a gateway before the tests of a file; every test gets a node with an allocation of its own. */
export function prepareTerminals(): void {
  beforeAll(async () => {
    const env = { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_TERMINAL_OPEN_SECONDS: "20" };
    api = await startTestApi({ env });
    ({ superuser, system } = openRoles(api.database));
    kelp = await createOrg(api, "kelp");
    other = await createOrg(api, "other");
    const { id: tokenId, token } = await api.operator(kelp.id)(createToken, { body: { name: "kelp member" } });
    client = api.as(token);
    owner = { tokenId };
    gateway = await enrollGateway(api);
  });

  beforeEach(async () => {
    await superuser`DELETE FROM terminal_tokens`;
    await gateway.announce();
    await renewPlace();
  });
}

/** Another node with an allocation. */
export async function renewPlace(): Promise<void> {
  place = await newPlace(api, superuser, kelp, owner);
}

export const mint = (
  as: Client = client,
  at: Place = place,
  body: { session_id?: string; offset?: number } = {},
) => as(createTerminalToken, { params: { allocation_id: at.allocationId }, body });

export const refusal = async (request: Promise<unknown>) => {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CallError)) throw new Error(`not refused: ${error}`);
  const { code, details, message, next_step } = error.envelope;
  return { status: error.status, code, details, message, next_step };
};

/** The same of a mint, whose correlation id leads to the audit with that code. */
export const audited = async (request: Promise<unknown>) => {
  const error = await request.catch((reason: unknown) => reason);
  const refused = await refusal(Promise.reject(error));
  const { correlation_id } = (error as CallError).envelope;
  expect((await auditOf(correlation_id)).join()).toContain(refused.code);
  return refused;
};

export const claim = (token: string, by = gateway) => by.ask(claimTerminalToken, { body: { token } });
export const grantOf = async (token: string) => (await claim(token)).body as unknown as TerminalGrant;
export const send = (sessionId: string, by = gateway) =>
  by.ask(openTerminal, { params: { session_id: sessionId }, body: { cols: 80, rows: 24 } });
export const awaitTask = (sessionId: string, taskId: unknown, by = gateway) =>
  by.ask(awaitTerminalTask, { params: { session_id: sessionId }, body: { task_id: String(taskId) } });
/** The final response to the gateway: why no task was created, or how it ended. */
export const open = async (sessionId: string, by = gateway) => {
  const sent = await send(sessionId, by);
  return sent.body["sent"] ? awaitTask(sessionId, sent.body["task_id"], by) : sent;
};
/** Leaves only this much of the time to open. */
export const hurry = (sessionId: string, seconds: number) =>
  superuser`UPDATE terminal_sessions SET opening_until = now() + ${seconds} * interval '1 second' WHERE id = ${sessionId}`;
export const reportEvents = (sessionId: string, ...events: TerminalEvent[]) =>
  gateway.ask(reportTerminalEvents, { params: { session_id: sessionId }, body: { events } });
export const step = (name: Extract<TerminalEvent, { type: "step" }>["step"], at = new Date()): TerminalEvent => ({
  ...{ type: "step", step: name, at: at.toISOString() },
});

export async function show(sessionId: string): Promise<TerminalSession> {
  const { items } = await api.operator(kelp.id)(listTerminals, {});
  const found = items.find(({ id }) => id === sessionId);
  if (!found) throw new Error(`no terminal ${sessionId}`);
  return found;
}

/** Creates and claims a token, and reports an open shell as the gateway does. */
export async function openSession(as: Client = client, at: Place = place): Promise<string> {
  const { token, session_id } = await mint(as, at);
  await claim(token);
  await reportEvents(session_id, step("browser_ws_ready"), step("node_stream_connected"), step("pty_ready"));
  return session_id;
}

export async function byCorrelationId(correlation_id: string) {
  return (await api.operator(kelp.id)(listTerminals, { query: { correlation_id } })).items;
}

export async function auditOf(correlationId: string) {
  const { items } = await api.operator(kelp.id)(listAudit, { query: { correlation_id: correlationId } });
  return items.map(({ action, result, reason }) => [action, result, reason].filter(Boolean).join(" ")).reverse();
}

export async function metric(line: string): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  const found = text.split("\n").find((one) => one.startsWith(line));
  return Number(found?.split(" ").at(-1) ?? 0);
}
export const closedEvent = (reason = "exit", detail: string | null = null): TerminalEvent => ({
  ...{ type: "closed", at: new Date().toISOString(), reason, detail, correlation_id: "connection-1" },
  ...{ exit: reason === "exit" ? { code: 0, signal: null } : null, bytes_in: 10, bytes_out: 2_000 },
});
