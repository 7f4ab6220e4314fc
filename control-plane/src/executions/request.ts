// Dispatches requests: stores those that are new, gives each to an agent, and answers for those that are known. What comes
// together is one statement; whatever that could not place waits, and is tried again with agents as they are now.

import { type DispatchBody, executionTimeout, requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { AgentExecutePayload, ConnectorActionPayload } from "@holdfast/contracts/execution/payloads";
import type { RequestVerdict } from "@holdfast/contracts/internal/executions";
import { isDeeperThan } from "@holdfast/kit/json-depth";
import { uuidv7 } from "@holdfast/kit/uuid";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";
import type { Candidates } from "./candidates.ts";
import { type Candidate, chooseAgent, explainNotChosen } from "./choose.ts";
import { type SecretVault, type SignExecution, signFor, toOffer } from "./offers.ts";
import type { Placing } from "./placing.ts";
import { type KnownRow, selectKnown, wantedOf } from "./queries.ts";
import { resultOf } from "./results.ts";
import type { Selection } from "./settings.ts";
import { markAskedElsewhere, requestAgain } from "./transitions/again.ts";
import { insertRequests, type MadeRequest, type NewRequest } from "./transitions/create.ts";
import { endWaits } from "./transitions/expire.ts";
import { endedStatuses, INITIAL_STATUS, statusesChangedBy } from "./transitions/table.ts";

export type Requested = { body: DispatchBody; correlationId: string; gatewayId: string };

type Item = { request: NewRequest; payload: DispatchBody["payload"]; secret: string | null; agent?: Candidate };

const MOST_IN_ONE = 64;
/** While one waits for the disk, the next is filled. */
const AT_ONCE = 2;
/** Maximum depth of a payload: PostgreSQL could not read deeper JSON. */
const MOST_LEVELS = 100;

export type Requests = {
  dispatch(requested: Requested): Promise<RequestVerdict>;
  settled(): Promise<void>;
};

export function createRequests(options: {
  /** Commits to the disk before it returns. */
  sql: Sql;
  candidates: Candidates;
  placing: Placing;
  vault: SecretVault;
  sign: SignExecution;
  selection: Selection;
  sessionSeconds: number;
  /** Requests that were stored, or revived. */
  onChanged(changed: { ids: readonly string[]; agentIds: readonly string[] }): void;
  /** Agents that are connected to another gateway than the one that asked. */
  onWork(agentIds: readonly string[]): void;
}): Requests {
  const { sql, candidates, vault, sign, selection, sessionSeconds } = options;

  const choose = async (item: Item): Promise<void> => {
    const { request } = item;
    const wanted = wantedOf({ ...rowLike(request), declined_by: [] });
    const agent = chooseAgent(await candidates.of(request.orgId), wanted, selection);
    if (!agent || agent.sessionId === null) return;
    candidates.count(agent.id, 1);
    const deadlineAt = new Date(Date.now() + request.timeoutMs);
    const signed = agent.protocolVersion > 0;
    const sent = agent.gatewayId === request.gatewayId;
    request.assignment = {
      agentId: agent.id,
      sessionId: agent.sessionId,
      signature: signed
        ? signFor(sign, { ...rowLike(request), payload: item.payload }, { agentId: agent.id, deadlineAt })
        : null,
      deadlineAt,
      sent,
      once: sent && !signed,
    };
  };

  const verdictOfAssigned = ({ request, payload, secret }: Item): RequestVerdict | undefined => {
    const { assignment } = request;
    if (!assignment) return undefined;
    const row = {
      ...{ ...rowLike(request), payload, agent_id: assignment.agentId, generation: 1 },
      ...{
        signature: assignment.signature,
        deadline_at: assignment.deadlineAt,
        correlation_id: request.correlationId,
      },
    };
    return {
      state: "assigned",
      request_id: request.requestId,
      agent_id: assignment.agentId,
      deadline_at: assignment.deadlineAt.toISOString(),
      offer: assignment.sent ? toOffer(row, { sessionId: assignment.sessionId, secret }) : null,
      known: false,
    };
  };

  const run = async (items: Item[]): Promise<RequestVerdict[]> => {
    for (const item of items) await choose(item);
    const requests = items.map(({ request }) => request);
    const made = new Map(
      (await insertRequests(sql, requests, { sessionSeconds })).map((row) => [row.request_id, row]),
    );
    const verdicts = new Map<string, RequestVerdict>();
    const waiting: MadeRequest[] = [];
    for (const item of items) {
      const row = made.get(item.request.requestId);
      const { assignment } = item.request;
      if (assignment && row?.agent_id !== assignment.agentId) {
        // The view was behind.
        candidates.count(assignment.agentId, -1);
        candidates.forget(item.request.orgId);
      }
      const assigned = row?.agent_id != null ? verdictOfAssigned(item) : undefined;
      if (assigned) verdicts.set(item.request.requestId, assigned);
      else if (row) waiting.push(row);
    }
    const rest = items.filter(({ request }) => !made.has(request.requestId));
    if (rest.length > 0) waiting.push(...(await answerKnown(rest, verdicts)));
    if (waiting.length > 0) await placeNow(items, waiting, verdicts);
    const given = requests.filter(
      ({ requestId, assignment }) => assignment && made.get(requestId)?.agent_id != null,
    );
    options.onChanged({
      ids: [...made.values(), ...waiting].map(({ id }) => id),
      agentIds: given.map(({ assignment }) => assignment?.agentId ?? ""),
    });
    options.onWork(given.flatMap(({ assignment }) => (assignment?.sent === false ? [assignment.agentId] : [])));
    return items.map(({ request }) => verdicts.get(request.requestId) ?? lost(request.requestId));
  };

  /** Returns those that no agent took before and that wait again. */
  const answerKnown = async (items: Item[], verdicts: Map<string, RequestVerdict>): Promise<MadeRequest[]> => {
    const rows = new Map(
      (
        await selectKnown(
          sql,
          items.map(({ request }) => request.requestId),
        )
      ).map((row) => [row.request_id, row]),
    );
    const again: Item[] = [];
    for (const item of items) {
      const { requestId, gatewayId } = item.request;
      const row = rows.get(requestId);
      if (row && isSameRequest(row, item.request)) {
        if (statusesChangedBy("again").includes(row.status)) again.push(item);
        else if (row.finished_at === null) await markAskedElsewhere(sql, [row.id], gatewayId);
      }
      verdicts.set(requestId, verdictOfKnown(item.request, row));
    }
    if (again.length === 0) return [];
    return requestAgain(
      sql,
      again.map(({ request }) => request),
    );
  };

  /** With agents as they are now. What may not wait and finds none ends at once. */
  const placeNow = async (items: Item[], rows: MadeRequest[], verdicts: Map<string, RequestVerdict>) => {
    const byId = new Map(items.map(({ request }) => [request.requestId, request]));
    const placed = await options.placing.place(rows.map(({ id }) => id));
    const left = rows.filter(({ id }) => !placed.has(id));
    const impatient = left.filter(({ request_id }) => byId.get(request_id)?.waitMs === 0);
    const ended = new Set(
      impatient.length === 0
        ? []
        : (await endWaits(sql, { limit: impatient.length, ids: impatient.map(({ id }) => id) })).map(
            ({ id }) => id,
          ),
    );
    const known = new Map(
      left.length === 0
        ? []
        : (
            await selectKnown(
              sql,
              left.map(({ request_id }) => request_id),
            )
          ).map((row) => [row.request_id, row]),
    );
    for (const row of rows) {
      const { id, request_id } = row;
      const place = placed.get(id);
      if (place) {
        const { agent_id, deadline_at } = place;
        const assigned = { agent_id, deadline_at: deadline_at.toISOString(), offer: null, known: false };
        verdicts.set(request_id, { state: "assigned", request_id, ...assigned });
        continue;
      }
      const current = known.get(request_id);
      const request = byId.get(request_id);
      if (!current || !request) continue;
      if (current.status !== INITIAL_STATUS && !ended.has(id)) {
        // Placed or ended by another process in this moment.
        verdicts.set(request_id, verdictOfKnown(request, current));
        continue;
      }
      const agents = await candidates.all(current.org_id);
      const not_chosen = explainNotChosen(agents, wantedOf(current));
      verdicts.set(
        request_id,
        ended.has(id)
          ? { state: "no_agent", request_id, not_chosen }
          : { state: "pending", request_id, wait_until: row.wait_until.toISOString(), known: false, not_chosen },
      );
    }
  };

  const together = createBatches<Item, RequestVerdict>({
    most: MOST_IN_ONE,
    atOnce: AT_ONCE,
    keyOf: ({ request }) => request.requestId,
    concernsAll: isUnavailable,
    run,
  });

  return {
    async dispatch({ body, correlationId, gatewayId }) {
      const requestId = requestIdOf(body);
      const read = readPayload(body);
      if ("refused" in read) return refused(requestId, read.refused, read.nextStep);
      const secret = body.secret ?? null;
      const request: NewRequest = {
        ...{ id: uuidv7(), orgId: body.organizationId, requestId, runId: body.runId, workflowId: body.workflowId },
        ...{ stepId: body.nodeId, stepType: body.nodeType, attempt: body.attemptCount },
        ...{ userId: body.requestedByUserId, kind: body.kind, shell: read.shell, connector: read.connector },
        selectorTag: body.selectorTag ?? null,
        selectorAgentId: body.selectorAgentId ?? null,
        payload: JSON.stringify(body.payload),
        sealedSecret: secret === null ? null : vault.seal(requestId, secret),
        timeoutMs: body.timeoutMs ?? executionTimeout.usual,
        waitMs: body.waitMs ?? 0,
        ...{ gatewayId, correlationId, auditId: uuidv7(), assignment: undefined },
      };
      return together.add({ request, payload: body.payload, secret });
    },
    settled: () => together.settled(),
  };
}

const rowLike = (request: NewRequest) => ({
  request_id: request.requestId,
  org_id: request.orgId,
  user_id: request.userId,
  kind: request.kind as DispatchBody["kind"],
  payload: undefined as unknown,
  timeout_ms: request.timeoutMs,
  connector: request.connector,
  selector_tag: request.selectorTag,
  selector_agent_id: request.selectorAgentId,
});

const isSameRequest = (row: KnownRow, request: NewRequest) =>
  row.org_id === request.orgId && row.kind === request.kind;

/** Of a request that was stored before. */
function verdictOfKnown(request: NewRequest, row: KnownRow | undefined): RequestVerdict {
  const { requestId: request_id } = request;
  if (!row) {
    return refused(
      request_id,
      "The organization of the request is not known.",
      "Check organizationId: it is the id of an organization on this server.",
    );
  }
  if (!isSameRequest(row, request)) {
    return refused(
      request_id,
      "Another request has this id, which is made of runId, nodeId and attemptCount.",
      "Use run ids that are unique, such as UUIDs, and a higher attemptCount for every attempt.",
    );
  }
  if (endedStatuses.includes(row.status) && row.finished_at) {
    if (row.output_erased_at) {
      return refused(
        request_id,
        `The request ended as ${row.status} at ${row.finished_at.toISOString()}, and its result was erased since.`,
        "It is not run again. Dispatch the step with a higher attemptCount, if it has to run once more.",
      );
    }
    return { state: "ended", request_id, result: resultOf(row), ended_at: row.finished_at.toISOString() };
  }
  if (row.agent_id !== null && row.deadline_at) {
    const { agent_id, deadline_at } = row;
    return {
      state: "assigned",
      ...{ request_id, agent_id, deadline_at: deadline_at.toISOString(), offer: null, known: true },
    };
  }
  const wait_until = (row.wait_until ?? new Date()).toISOString();
  return { state: "pending", request_id, wait_until, known: true, not_chosen: [] };
}

function refused(request_id: string, message: string, next_step: string): RequestVerdict {
  return { state: "refused", request_id, message, next_step };
}

function lost(requestId: string): never {
  throw new Error(`the request ${requestId} has no verdict`);
}

type ReadPayload = { shell: boolean; connector: string | null } | { refused: string; nextStep: string };

/** What decides where a request can run, and whether its result is one. */
function readPayload({ kind, payload }: DispatchBody): ReadPayload {
  if (isDeeperThan(payload, MOST_LEVELS)) {
    return { refused: `The payload has more than ${MOST_LEVELS} levels.`, nextStep: "Send a flatter payload." };
  }
  if (kind === "connector.action") {
    const read = ConnectorActionPayload.safeParse(payload);
    if (read.success) return { shell: false, connector: read.data.connectorId };
    return {
      refused: "The payload of a connector.action needs connectorId and actionId.",
      nextStep: "Add the missing fields to the payload.",
    };
  }
  const read = AgentExecutePayload.safeParse(payload);
  if (read.success) return { shell: read.data.node.config?.task !== undefined, connector: null };
  const [problem] = read.error.issues;
  return {
    refused: `The payload of an agent.execute is not valid: ${problem?.path.join(".")} ${problem?.message}`,
    nextStep: "Send nodeId and node, with the node's config as documented.",
  };
}
