// The executions of one api process: joins dispatching, placing, what agents report, and what gateways are told. All its
// state is in the database; what is in memory here only makes it fast.

import type { AnswerOf, BodyOf } from "@holdfast/contracts/endpoint";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type {
  ExecutionOffer,
  NotChosen,
  RequestVerdict,
  readExecutionResults,
  reportExecutionEvents,
} from "@holdfast/contracts/internal/executions";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { UseSecret } from "../secrets/use.ts";
import type { TaskPools } from "../tasks/engine.ts";
import { type Announcements, announceRequests } from "./announce.ts";
import { createCandidates } from "./candidates.ts";
import { explainNotChosen } from "./choose.ts";
import { measureExecutions } from "./metrics.ts";
import { openSecretVault, type SignExecution, signFor, toOffer } from "./offers.ts";
import { createOnDisk } from "./on-disk.ts";
import { createPlacing } from "./placing.ts";
import { type KnownRow, type OfferRow, selectKnown, wantedOf } from "./queries.ts";
import { type Changes, createReports } from "./report.ts";
import { createRequests, type Requested } from "./request.ts";
import type { Selection } from "./settings.ts";
import type { Cancelled } from "./transitions/cancel.ts";
import { endOverdue, endWaits } from "./transitions/expire.ts";
import { type HeldVerdict, holdRequests } from "./transitions/hold.ts";
import type { Taken } from "./transitions/revoke.ts";
import { type Connection, markSent, storeSignature } from "./transitions/send.ts";
import { endedStatuses, INITIAL_STATUS, statusesChangedBy } from "./transitions/table.ts";
import { resultOf } from "./verdicts.ts";

export type ExecutionEngine = {
  /** One verdict for each, in their order. */
  dispatch(requests: readonly Requested[]): Promise<RequestVerdict[]>;
  report(
    gatewayId: string,
    events: BodyOf<typeof reportExecutionEvents>["events"],
  ): Promise<AnswerOf<typeof reportExecutionEvents>["verdicts"]>;
  /** Of those that have ended. */
  results(requestIds: readonly string[]): Promise<AnswerOf<typeof readExecutionResults>["ended"]>;
  /** What is to be sent by this connection now. */
  takeWork(
    connection: Connection,
    options: { again: boolean; holding: readonly string[] },
  ): Promise<ExecutionOffer[]>;
  /** What an agent holds when it connects: its leases are renewed, and what is over is returned. */
  holds(
    connection: Connection,
    holding: readonly { requestId: string; generation: number }[],
  ): Promise<HeldVerdict[]>;
  /** Why no agent was chosen for it, of a request that waits or was not placed. */
  notChosen(
    request: Pick<KnownRow, "org_id" | "kind" | "connector" | "declined_by"> & Selector,
  ): Promise<NotChosen[]>;
  /** Call after the commit of a change that was made elsewhere. */
  changed(changes: Partial<Changes>): void;
  /** Call after the commit: an agent of the organization connected or changed. */
  agentChanged(agent: { id: string; orgId: string }): void;
  /** Ends what is overdue, and places what waits. */
  sweep(): Promise<{ timed_out: number; unplaced: number; placed: number }>;
  /** Call after the commit. */
  cancelled(execution: Cancelled, orgId: string): void;
  /** Call after the commit. */
  agentRevoked(agent: { id: string; org_id: string }, taken: readonly Taken[]): void;
  announcements: Pick<Announcements, "unfinished" | "missed">;
  /** Without a touch for so long, a session counts as closed. */
  sessionSeconds: number;
  agentStaleMs: number;
  /** Whether policy allows nodes to run steps with their own identity. */
  nodesAllowed(): boolean;
  /** Where agents connect if no gateway says so. */
  wsUrl: string | undefined;
  stop(): Promise<void>;
};

type Selector = { selector_tag: string | null; selector_agent_id: string | null };

const BATCH = 500;
/** A gateway touches a session a few seconds after it heard the agent. */
const TOUCH_MARGIN_SECONDS = 10;

export async function openExecutions(options: {
  pools: TaskPools;
  keyring: Keyring;
  signals: Signals;
  sign: SignExecution;
  useSecret: UseSecret;
  selection: Selection;
  agentStaleMs: number;
  nodesAllowed?: () => boolean;
  wsUrl: string | undefined;
  publish(lines: readonly ServiceNews[]): void;
  metrics: Metrics;
  log: Log;
}): Promise<ExecutionEngine> {
  const { pools, signals, sign, selection, log } = options;
  const { durable, swift } = pools;
  const sessionSeconds = options.agentStaleMs / 1000 + TOUCH_MARGIN_SECONDS;
  const vault = await openSecretVault(options.keyring);
  const candidates = createCandidates({ sql: swift, signals, sessionSeconds, log });
  const countEnd = measureExecutions(options.metrics, swift, { sessionSeconds });
  const announcements = announceRequests({ sql: swift, signals, publish: options.publish, log });

  const onDisk = createOnDisk(durable);
  const publishRequests = (ids: readonly string[]) => signals.publish("execution", ids);
  const publishWork = (agentIds: Iterable<string>) => signals.publish("agent_work", [...new Set(agentIds)]);

  const placing = createPlacing({
    ...{ sql: durable, candidates, sign, selection, sessionSeconds, log },
    onPlaced(placed) {
      publishRequests(placed.map(({ id }) => id));
      publishWork(placed.map(({ agent_id }) => agent_id));
    },
  });
  const requests = createRequests({
    ...{
      sql: swift,
      onDisk: onDisk.wait,
      candidates,
      placing,
      vault,
      sign,
      selection,
      sessionSeconds,
      useSecret: options.useSecret,
    },
    onStored: publishRequests,
    onUnplaced: (ended) => ended.forEach(countEnd),
    onWork: publishWork,
  });

  const changed = ({ ended = [], changed = [], waiting = [] }: Partial<Changes>) => {
    for (const { agentId } of [...ended, ...waiting]) if (agentId !== null) candidates.count(agentId, -1);
    for (const end of ended) countEnd(end);
    publishRequests([...ended, ...waiting].map(({ id }) => id).concat(changed));
    signals.publish(
      "execution_ended",
      ended.filter(({ elsewhere }) => elsewhere).map(({ id }) => id),
    );
    for (const { orgId } of waiting) placing.waitsIn(orgId);
    for (const orgId of new Set([...ended, ...waiting].map((one) => one.orgId))) placing.roomIn(orgId);
  };
  const reports = createReports({ durable, swift, onDisk: onDisk.wait, onChanged: changed });

  const offerOf = async (row: OfferRow, { sessionId, protocolVersion }: Connection): Promise<ExecutionOffer> => {
    const secret = row.sealed_secret === null ? null : vault.open(row.request_id, row.sealed_secret);
    if (protocolVersion === 0 || row.signature !== null) return toOffer(row, { sessionId, secret });
    const signature = signFor(sign, row, { agentId: row.agent_id, deadlineAt: row.deadline_at });
    await storeSignature(durable, row.id, signature);
    return toOffer({ ...row, signature }, { sessionId, secret });
  };

  return {
    dispatch: (all) => Promise.all(all.map((one) => requests.dispatch(one))),
    report: reports.report,
    async results(requestIds) {
      const rows = (await selectKnown(swift, requestIds)).filter(
        ({ status, output_erased_at }) => endedStatuses.includes(status) && output_erased_at === null,
      );
      return Promise.all(
        rows.map(async (row) => ({
          request_id: row.request_id,
          result: resultOf(row),
          no_agent: statusesChangedBy("again").includes(row.status)
            ? explainNotChosen(await candidates.toExplain(row.org_id), wantedOf(row))
            : null,
        })),
      );
    },
    async takeWork(connection, sending) {
      const rows = await markSent(durable, connection, sending);
      return Promise.all(rows.map((row) => offerOf(row, connection)));
    },
    async holds({ agentId, sessionId }, holding) {
      if (holding.length === 0) return [];
      const reports = holding.map((one) => ({
        ...one,
        agentId,
        sessionId,
        event: "hold" as const,
        progress: null,
      }));
      return holdRequests(durable, reports);
    },
    notChosen: async (request) => explainNotChosen(await candidates.toExplain(request.org_id), wantedOf(request)),
    changed,
    agentChanged({ id, orgId }) {
      signals.publish("agent", [id]);
      placing.roomIn(orgId);
    },
    async sweep() {
      const overdue = await untilFewer((limit) => endOverdue(durable, { limit, sessionSeconds }));
      const placed = await placing.placeAll();
      const unplaced = await untilFewer((limit) => endWaits(durable, { limit }));
      const ended = [...overdue, ...unplaced].map(({ id, org_id, agent_id, status, error }) => {
        return { id, orgId: org_id, agentId: agent_id, status, error, elsewhere: true };
      });
      if (ended.length > 0) changed({ ended });
      return { timed_out: overdue.length, unplaced: unplaced.length, placed };
    },
    cancelled({ id, agent_id, status, ended }, orgId) {
      if (ended) changed({ ended: [{ id, orgId, agentId: agent_id, status, error: null, elsewhere: true }] });
      else publishRequests([id]);
      if (!ended && agent_id !== null) publishWork([agent_id]);
    },
    agentRevoked({ id, org_id: orgId }, taken) {
      const of = (one: Taken) => ({ ...one, orgId, agentId: id, error: "AGENT_DISCONNECTED", elsewhere: true });
      changed({
        waiting: taken.filter(({ status }) => status === INITIAL_STATUS).map(of),
        ended: taken.filter(({ status }) => status !== INITIAL_STATUS).map(of),
      });
      signals.publish("agent", [id]);
      signals.publish("agent_revoked", [id]);
    },
    announcements,
    ...{ sessionSeconds, agentStaleMs: options.agentStaleMs, wsUrl: options.wsUrl },
    nodesAllowed: options.nodesAllowed ?? (() => false),
    async stop() {
      candidates.stop();
      await Promise.all([requests.settled(), reports.settled(), placing.settled(), announcements.stop()]);
      await onDisk.settled();
    },
  };
}

async function untilFewer<Row>(run: (limit: number) => Promise<Row[]>): Promise<Row[]> {
  const all: Row[] = [];
  for (;;) {
    const rows = await run(BATCH);
    all.push(...rows);
    if (rows.length < BATCH) return all;
  }
}
