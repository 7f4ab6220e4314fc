// Receives what agents report about requests. Results that arrive together are stored by one statement, because the commit
// is what costs; everything else may be lost with the database's last moment, and is reported or decided again.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import { MOST_DISPATCH_BYTES } from "@holdfast/contracts/execution/dispatch";
import type { ExecutionEvent, reportExecutionEvents } from "@holdfast/contracts/internal/executions";
import { isDeeperThan } from "@holdfast/kit/json-depth";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";
import { type Chunk, storeOutput } from "./output.ts";
import { MOST_LEVELS } from "./payload.ts";
import { acceptResults, type Judged, type ReportedResult } from "./transitions/accept-results.ts";
import { type DeclineVerdict, declineRequests } from "./transitions/decline.ts";
import { type Held, type HeldVerdict, holdRequests } from "./transitions/hold.ts";
import { INITIAL_STATUS } from "./transitions/table.ts";

type EventVerdict = { verdict: "accepted" | "duplicate" | "late" | "unknown"; stop: string | null };
type Of<Type extends ExecutionEvent["type"]> = Extract<ExecutionEvent, { type: Type }>;

export type Reports = {
  /** One verdict for each event, in their order. */
  report(gatewayId: string, events: BodyOf<typeof reportExecutionEvents>["events"]): Promise<EventVerdict[]>;
  settled(): Promise<void>;
};

export type Ended = {
  id: string;
  orgId: string;
  /** Null: it was with none. */
  agentId: string | null;
  status: ExecutionState;
  error: string | null;
  /** Another gateway than the reporting one may wait for the end. */
  elsewhere: boolean;
};

export type Changes = {
  ended: readonly Ended[];
  /** Requests that changed and go on. */
  changed: readonly string[];
  /** Requests that were declined and wait again. */
  waiting: readonly { id: string; orgId: string; agentId: string }[];
};

const MOST_IN_ONE = 256;
/** As for dispatches, see request.ts. */
const AT_ONCE = 1;
const MOST_ERROR_CHARACTERS = 4_000;

type Result = { result: ReportedResult; gatewayId: string };

export function createReports(options: {
  /** Commits to the disk before it returns. */
  durable: Sql;
  /** Does not wait for the disk. */
  swift: Sql;
  /** Resolves when everything that was committed before is there. */
  onDisk(): Promise<void>;
  onChanged(changes: Partial<Changes>): void;
}): Reports {
  const { durable, swift, onChanged } = options;

  const accepting = createBatches<Result, Judged | undefined>({
    most: MOST_IN_ONE,
    atOnce: AT_ONCE,
    keyOf: ({ result }) => `${result.requestId} ${result.agentId}`,
    concernsAll: isUnavailable,
    run: async (batch) => {
      const judged = await acceptResults(
        swift,
        batch.map(({ result }) => result),
      );
      const found = new Map(judged.map((one) => [`${one.request_id} ${one.agent_id}`, one]));
      const verdictOf = ({ result }: Result) => found.get(`${result.requestId} ${result.agentId}`);
      const ended = batch.flatMap((one) => {
        const judged = verdictOf(one);
        if (judged?.verdict !== "accepted") return [];
        const { id, org_id, agent_id, status, asked_by, asked_elsewhere } = judged;
        const elsewhere = asked_elsewhere || asked_by !== one.gatewayId;
        return [{ id, orgId: org_id, agentId: agent_id, status, error: null, elsewhere }];
      });
      // Nobody learns of an end that a crash could undo. The next statement does not wait for that.
      const publish = () => onChanged({ ended });
      void options.onDisk().then(publish, publish);
      return batch.map(verdictOf);
    },
  });

  /** Those of one delivery together: the newest progress counts. */
  const hold = async (events: (Of<"accepted"> | Of<"renewed"> | Of<"progress">)[]) => {
    const byDelivery = new Map<string, Held>();
    for (const event of events) {
      const known = byDelivery.get(deliveryOf(event));
      const progress = event.type === "progress" ? progressOf(event) : (known?.progress ?? null);
      const { request_id: requestId, agent_id: agentId, session_id: sessionId, generation } = event;
      byDelivery.set(deliveryOf(event), { requestId, agentId, sessionId, generation, event: "accept", progress });
    }
    if (byDelivery.size === 0) return new Map<string, EventVerdict>();
    const rows = await holdRequests(swift, [...byDelivery.values()]);
    onChanged({ changed: rows.filter(({ changed }) => changed).map(({ id }) => id) });
    return new Map(rows.map((row) => [deliveryOf(row), verdictOfHeld(row)]));
  };

  const print = async (events: Of<"log">[]) => {
    if (events.length === 0) return;
    onChanged({ changed: await storeOutput(swift, events.map(chunkOf)) });
  };

  const decline = async (events: Of<"declined">[], gatewayId: string) => {
    if (events.length === 0) return new Map<string, EventVerdict>();
    const once = new Map(events.map((event) => [deliveryOf(event), event]));
    const rows = await declineRequests(
      durable,
      [...once.values()].map(({ request_id, agent_id, session_id, generation, reason }) => {
        return { requestId: request_id, agentId: agent_id, sessionId: session_id, generation, reason };
      }),
    );
    onChanged(changesOfDeclined(rows, gatewayId));
    return new Map(
      rows.map((row) => [
        deliveryOf(row),
        { verdict: row.status === null ? ("late" as const) : ("accepted" as const), stop: null },
      ]),
    );
  };

  const accept = async (event: Of<"result">, gatewayId: string): Promise<EventVerdict> => {
    const judged = await accepting.add({ result: reportedResult(event), gatewayId });
    await options.onDisk();
    return { verdict: judged?.verdict ?? "unknown", stop: null };
  };

  return {
    async report(gatewayId, events) {
      const ends = new Set(events.filter(({ type }) => type === "result").map(deliveryOf));
      const of = <Type extends ExecutionEvent["type"]>(...types: Type[]) =>
        events.filter((event): event is Of<Type> => types.some((type) => type === event.type));
      // What a result of the same report ends need not be written before.
      const open = of("accepted", "renewed", "progress").filter((event) => !ends.has(deliveryOf(event)));
      const held = await hold(open);
      await print(of("log"));
      const declined = await decline(of("declined"), gatewayId);
      return Promise.all(
        events.map((event) => {
          if (event.type === "result") return accept(event, gatewayId);
          if (event.type === "declined") return declined.get(deliveryOf(event)) ?? unknown;
          if (event.type === "log" || ends.has(deliveryOf(event))) return accepted;
          return held.get(deliveryOf(event)) ?? unknown;
        }),
      );
    },
    settled: () => accepting.settled(),
  };
}

const unknown: EventVerdict = { verdict: "unknown", stop: null };
const accepted: EventVerdict = { verdict: "accepted", stop: null };

const deliveryOf = (one: { request_id: string; agent_id: string; generation: number | null }) =>
  `${one.request_id} ${one.agent_id} ${one.generation}`;

function verdictOfHeld({ outcome, reason }: HeldVerdict): EventVerdict {
  if (outcome === "renewed") return accepted;
  return outcome === "asked_to_stop" ? { verdict: "late", stop: reason } : { verdict: "duplicate", stop: null };
}

function changesOfDeclined(rows: readonly DeclineVerdict[], gatewayId: string): Partial<Changes> {
  const moved = rows.filter(({ status }) => status !== null);
  const [waiting, ended] = [
    moved.filter(({ status }) => status === INITIAL_STATUS),
    moved.filter(({ status }) => status !== INITIAL_STATUS),
  ];
  return {
    waiting: waiting.map(({ id, org_id, agent_id }) => ({ id, orgId: org_id, agentId: agent_id })),
    ended: ended.flatMap(({ id, org_id, agent_id, status, asked_by, asked_elsewhere }) => {
      const elsewhere = asked_elsewhere || asked_by !== gatewayId;
      return status === null ? [] : [{ id, orgId: org_id, agentId: agent_id, status, error: null, elsewhere }];
    }),
  };
}

function progressOf({ message, percent }: Of<"progress">): string {
  return JSON.stringify({ message, percent, at: new Date().toISOString() });
}

function chunkOf({ request_id, agent_id, generation, seq, stream, text }: Of<"log">): Chunk {
  return { requestId: request_id, agentId: agent_id, generation, seq, stream, text };
}

/** What cannot be stored is a failure that says so, not a result that is sent again and again. */
function reportedResult({ request_id, agent_id, generation, result }: Of<"result">): ReportedResult {
  const of = { requestId: request_id, agentId: agent_id, generation };
  const output = result.output === undefined ? null : JSON.stringify(result.output);
  const problem =
    output !== null && Buffer.byteLength(output) > MOST_DISPATCH_BYTES
      ? `The output is larger than ${MOST_DISPATCH_BYTES} bytes.`
      : isDeeperThan(result.output, MOST_LEVELS)
        ? `The output has more than ${MOST_LEVELS} levels.`
        : undefined;
  if (problem !== undefined) {
    const message = JSON.stringify({ message: `${problem} It was not stored.` });
    return { ...of, status: "failed", output: message, error: "NODE_EXECUTION_FAILED", hasExitCode: true };
  }
  const error = result.error?.replaceAll("\0", "").toWellFormed().slice(0, MOST_ERROR_CHARACTERS) || null;
  return { ...of, status: result.status, output, error, hasExitCode: hasExitCode(result.output) };
}

function hasExitCode(output: unknown): boolean {
  return (
    typeof output === "object" && output !== null && "exitCode" in output && Number.isInteger(output.exitCode)
  );
}
