// Dispatches requests: stores those that are new, gives each to an agent, and answers for those that are known. What comes
// together is one statement; whatever that could not place waits, and is tried again with agents as they are now.

import { type DispatchBody, executionTimeout, requestIdOf } from "@holdfast/contracts/execution/dispatch";

import type { RequestVerdict } from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";
import type { UsedSecret, UseSecret } from "../secrets/use.ts";
import type { Candidates } from "./candidates.ts";
import { chooseAgent, explainNotChosen } from "./choose.ts";
import { type SecretVault, type SignExecution, signFor, toOffer } from "./offers.ts";
import { readPayload } from "./payload.ts";
import type { Placing } from "./placing.ts";
import { type KnownRow, selectKnown, wantedOf } from "./queries.ts";
import type { Selection } from "./settings.ts";
import { markAskedElsewhere, requestAgain } from "./transitions/again.ts";
import { type Assignment, insertRequests, type MadeRequest, type NewRequest } from "./transitions/create.ts";
import { type Expired, endWaits } from "./transitions/expire.ts";
import { INITIAL_STATUS, statusesChangedBy } from "./transitions/table.ts";
import { isSameRequest, refused, verdictOfKnown } from "./verdicts.ts";

export type Requested = { body: DispatchBody; correlationId: string; gatewayId: string };

/** A request on its way into the database, with what its offer needs in clear text. */
type Item = { request: NewRequest; body: DispatchBody };
type Verdicts = Map<string, RequestVerdict>;

const MOST_IN_ONE = 64;
/** Statements for one agent wait for each other. With two at once, 32 requests in flight took 11.5 ms instead of 8.5. */
const AT_ONCE = 1;

export type Requests = {
  dispatch(requested: Requested): Promise<RequestVerdict>;
  settled(): Promise<void>;
};

export type RequestOptions = {
  /** Does not wait for the disk. */
  sql: Sql;
  /** Resolves when everything that was committed before is on the disk. */
  onDisk(): Promise<void>;
  candidates: Candidates;
  placing: Placing;
  vault: SecretVault;
  useSecret: UseSecret;
  sign: SignExecution;
  selection: Selection;
  /** Without a touch for so long, a session counts as closed. */
  sessionSeconds: number;
  /** Requests that were stored, or dispatched again. */
  onStored(ids: readonly string[]): void;
  /** Requests for which there is no agent and that do not wait. */
  onUnplaced(ended: readonly Expired[]): void;
  /** Agents that are connected to another gateway than the one that asked. */
  onWork(agentIds: readonly string[]): void;
};

export function createRequests(options: RequestOptions): Requests {
  const { sql, candidates, sessionSeconds } = options;

  const run = async (items: Item[]): Promise<RequestVerdict[]> => {
    for (const { request, body } of items) request.assignment = await assign(options, request, body);
    const requests = items.map(({ request }) => request);
    const made = new Map(
      (await insertRequests(sql, requests, { sessionSeconds })).map((row) => [row.request_id, row]),
    );
    const verdicts: Verdicts = new Map();
    const waiting: MadeRequest[] = [];
    const work: string[] = [];
    for (const { request, body } of items) {
      const { requestId, orgId, assignment } = request;
      const row = made.get(requestId);
      if (assignment && row?.agent_id === assignment.agentId) {
        verdicts.set(requestId, verdictOfAssigned(request, body, assignment));
        if (!assignment.sent) work.push(assignment.agentId);
        continue;
      }
      if (row) waiting.push(row);
      if (!assignment) continue;
      // The request is known, or the view was behind.
      candidates.count(assignment.agentId, -1);
      if (row) candidates.forget(orgId);
    }
    const known = requests.filter(({ requestId }) => !made.has(requestId));
    if (known.length > 0) waiting.push(...(await answerKnown(sql, known, verdicts)));
    if (waiting.length > 0)
      await placeNow(options, new Map(requests.map((one) => [one.requestId, one])), waiting, verdicts);
    options.onStored([...new Set([...made.values(), ...waiting].map(({ id }) => id))]);
    options.onWork(work);
    return requests.map(({ requestId }) => verdicts.get(requestId) ?? missing(requestId));
  };

  const together = createBatches<Item, RequestVerdict>({
    most: MOST_IN_ONE,
    atOnce: AT_ONCE,
    keyOf: ({ request }) => request.requestId,
    concernsAll: isUnavailable,
    run,
  });

  return {
    async dispatch(requested) {
      const { body, correlationId } = requested;
      const read = readPayload(body);
      if ("message" in read) return refused(requestIdOf(body), read);
      const used = await options.useSecret(body, { correlationId });
      if (used && "message" in used) return refused(requestIdOf(body), used);
      const secret = used?.value ?? body.secret;
      const request = newRequest(requested, { ...read, used, secret }, options.vault);
      const verdict = await together.add({
        request,
        body: { ...body, ...(secret === undefined ? {} : { secret }) },
      });
      await options.onDisk();
      return verdict;
    },
    settled: () => together.settled(),
  };
}

function newRequest(
  { body, correlationId, gatewayId }: Requested,
  {
    shell,
    connector,
    used,
    secret,
  }: Pick<NewRequest, "shell" | "connector"> & { used: UsedSecret | undefined; secret: string | undefined },
  vault: SecretVault,
): NewRequest {
  const requestId = requestIdOf(body);
  return {
    ...{ id: uuidv7(), orgId: body.organizationId, requestId, runId: body.runId, workflowId: body.workflowId },
    ...{ stepId: body.nodeId, stepType: body.nodeType, attempt: body.attemptCount },
    ...{ userId: body.requestedByUserId, kind: body.kind, shell, connector },
    selectorTag: body.selectorTag ?? null,
    selectorAgentId: body.selectorAgentId ?? null,
    payload: JSON.stringify(body.payload),
    sealedSecret: secret === undefined ? null : vault.seal(requestId, secret),
    ...{ secretId: used?.id ?? null, secretVersion: used?.version ?? null },
    timeoutMs: body.timeoutMs ?? executionTimeout.usual,
    waitMs: body.waitMs ?? 0,
    ...{ gatewayId, correlationId, auditId: uuidv7(), assignment: undefined },
  };
}

/**
 * By what this process knows of the agents. Counts it as given at once, for the next choice. Undefined also if an older
 * request waits for that agent: then it waits behind it.
 */
async function assign(
  { candidates, placing, sign, selection }: RequestOptions,
  request: NewRequest,
  body: DispatchBody,
): Promise<Assignment | undefined> {
  const { kind, connector, selectorAgentId, selectorTag } = request;
  const wanted = { kind, connector, selectorAgentId, selectorTag, declinedBy: [] };
  const agent = chooseAgent(await candidates.of(request.orgId), wanted, selection);
  if (!agent || agent.sessionId === null || placing.isWanted(request.orgId, agent)) return undefined;
  candidates.count(agent.id, 1);
  const deadlineAt = new Date(Date.now() + request.timeoutMs);
  const isSigned = agent.protocolVersion > 0;
  const sent = agent.gatewayId === request.gatewayId;
  return {
    ...{ agentId: agent.id, sessionId: agent.sessionId, journalId: agent.journalId, deadlineAt, sent },
    signature: isSigned ? signFor(sign, contentOf(request, body), { agentId: agent.id, deadlineAt }) : null,
    once: sent && !isSigned,
  };
}

const contentOf = (request: NewRequest, body: DispatchBody) => ({
  ...{ request_id: request.requestId, org_id: request.orgId, user_id: request.userId, kind: request.kind },
  ...{ payload: body.payload, timeout_ms: request.timeoutMs, correlation_id: request.correlationId },
});

function verdictOfAssigned(
  request: NewRequest,
  body: DispatchBody,
  { agentId, sessionId, journalId, signature, deadlineAt, sent }: Assignment,
): RequestVerdict {
  const given = { agent_id: agentId, generation: 1, signature, deadline_at: deadlineAt, journal_id: journalId };
  const secret = body.secret ?? null;
  return {
    ...{ state: "assigned", request_id: request.requestId, agent_id: agentId, known: false },
    deadline_at: deadlineAt.toISOString(),
    offer: sent ? toOffer({ ...contentOf(request, body), ...given }, { sessionId, secret }) : null,
  };
}

/** Returns those that no agent took before and that wait again. */
async function answerKnown(sql: Sql, requests: NewRequest[], verdicts: Verdicts): Promise<MadeRequest[]> {
  const ids = requests.map(({ requestId }) => requestId);
  const rows = new Map((await selectKnown(sql, ids)).map((row) => [row.request_id, row]));
  const again: NewRequest[] = [];
  const asked = new Map<string, string[]>();
  for (const request of requests) {
    const row = rows.get(request.requestId);
    verdicts.set(request.requestId, verdictOfKnown(request, row));
    if (!row || !isSameRequest(row, request)) continue;
    if (statusesChangedBy("again").includes(row.status)) again.push(request);
    else if (row.finished_at === null)
      asked.set(request.gatewayId, [...(asked.get(request.gatewayId) ?? []), row.id]);
  }
  for (const [gatewayId, of] of asked) await markAskedElsewhere(sql, of, gatewayId);
  return again.length === 0 ? [] : requestAgain(sql, again);
}

/** With agents as they are now. What may not wait and finds none ends at once. */
async function placeNow(
  { sql, candidates, placing, onUnplaced }: RequestOptions,
  requests: ReadonlyMap<string, NewRequest>,
  rows: readonly MadeRequest[],
  verdicts: Verdicts,
): Promise<void> {
  const placed = await placing.place(rows.map(({ id }) => id));
  for (const { id, request_id } of rows) {
    const place = placed.get(id);
    if (!place) continue;
    const { agent_id, deadline_at } = place;
    const assigned = { agent_id, deadline_at: deadline_at.toISOString(), offer: null, known: false };
    verdicts.set(request_id, { state: "assigned", request_id, ...assigned });
  }
  const left = rows.filter(({ id }) => !placed.has(id));
  if (left.length === 0) return;
  const impatient = left.filter(({ request_id }) => requests.get(request_id)?.waitMs === 0).map(({ id }) => id);
  const ended = impatient.length === 0 ? [] : await endWaits(sql, { limit: impatient.length, ids: impatient });
  onUnplaced(ended);
  const unplaced = new Set(ended.map(({ id }) => id));
  const agents = new Map<string, ReturnType<Candidates["toExplain"]>>();
  const notChosen = async (row: KnownRow) => {
    const all = agents.get(row.org_id) ?? candidates.toExplain(row.org_id);
    agents.set(row.org_id, all);
    return explainNotChosen(await all, wantedOf(row));
  };
  for (const row of await selectKnown(
    sql,
    left.map(({ request_id }) => request_id),
  )) {
    const request = requests.get(row.request_id);
    if (!request) continue;
    const { id, request_id, status } = row;
    if (unplaced.has(id))
      verdicts.set(request_id, { state: "no_agent", request_id, not_chosen: await notChosen(row) });
    // Placed or ended by another process in this moment.
    else if (status !== INITIAL_STATUS) verdicts.set(request_id, verdictOfKnown(request, row));
    else {
      const wait_until = (row.wait_until ?? new Date()).toISOString();
      const waits = { state: "pending" as const, request_id, wait_until, known: false };
      verdicts.set(request_id, { ...waits, not_chosen: await notChosen(row) });
    }
  }
}

function missing(requestId: string): never {
  throw new Error(`the request ${requestId} has no verdict`);
}
