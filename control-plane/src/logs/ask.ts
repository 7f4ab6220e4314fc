// Asks every process of the installation for log lines, and waits until all have answered or their time is over. Who runs is
// read from the same rows as the status page. Whoever does not answer is named: its lines are missing, not absent.

import type { LogProcess, LogReplica } from "@holdfast/contracts/endpoints/logs";
import type { LogAnswer, LogRequest } from "@holdfast/contracts/internal/logs";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import type { Sql } from "../database/connect.ts";
import { selectGatewaysPresent } from "../internal-api/gateways.ts";
import { PROCESS_SILENT_AFTER } from "../platform/presence.ts";
import { type KeptLine, parseLine } from "./lines.ts";

export type Gathered = {
  /** Oldest first. */
  lines: KeptLine[];
  truncated: boolean;
  replicas: LogReplica[];
  /** What each process that answered runs with. */
  settings: { process: LogProcess; replica: string; version: string; settings: Record<string, string | null> }[];
};

export type Asked = Omit<LogRequest, "request_id"> & { process?: LogProcess | undefined };

/** A signal may be lost; then processes look by themselves, every two seconds. */
const WITHIN_MS = 4_000;
const LOOK_EVERY_MS = 250;

type Present = { id: string; kind: LogProcess; host: string | null };

export async function askForLogs(
  { system, signals }: Pick<ApiContext, "system" | "signals">,
  { process, ...asked }: Asked,
): Promise<Gathered> {
  const id = uuidv7();
  const present = (await selectPresent(system)).filter(({ kind }) => process === undefined || kind === process);
  const request: LogRequest = { request_id: id, ...asked };
  await system`
    WITH old AS (DELETE FROM log_requests WHERE asked_at < now() - interval '1 minute')
    INSERT INTO log_requests (id, request) VALUES (${id}, ${JSON.stringify(request)}::text::json)`;
  try {
    const answers = await awaitAnswers({ system, signals }, id, present);
    return gather(present, answers, asked.limit);
  } finally {
    await system`DELETE FROM log_requests WHERE id = ${id}`.catch(() => undefined);
  }
}

async function selectPresent(system: Sql): Promise<Present[]> {
  const processes = await system<Present[]>`
    SELECT id, kind, hostname AS host FROM processes
    WHERE last_seen_at > now() - ${PROCESS_SILENT_AFTER}::interval ORDER BY kind, id`;
  const gateways = await selectGatewaysPresent(system);
  return [
    ...processes,
    ...gateways.map(({ id, node_url }) => ({ id, kind: "gateway" as const, host: new URL(node_url).host })),
  ];
}

type AnswerRow = { process_id: string; answer: LogAnswer };

async function awaitAnswers(
  { system, signals }: Pick<ApiContext, "system" | "signals">,
  id: string,
  present: readonly Present[],
): Promise<Map<string, LogAnswer>> {
  let wake: () => void = () => undefined;
  const unsubscribe = signals.subscribe("log_answer", (ids) => {
    if (ids.includes(id)) wake();
  });
  const deadline = performance.now() + WITHIN_MS;
  try {
    signals.publish("log_request", [id]);
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const rows = await system<AnswerRow[]>`SELECT process_id, answer FROM log_answers WHERE request_id = ${id}`;
      const answers = new Map(rows.map(({ process_id, answer }) => [process_id, answer]));
      const isOver = performance.now() >= deadline;
      if (isOver || present.every((one) => answers.has(one.id))) return answers;
      await Promise.race([woken, pause(LOOK_EVERY_MS)]);
    }
  } finally {
    unsubscribe();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function gather(present: readonly Present[], answers: ReadonlyMap<string, LogAnswer>, limit: number): Gathered {
  const answered = present.flatMap(({ id, kind }) => {
    const answer = answers.get(id);
    return answer ? [{ replica: id, process: kind, ...answer }] : [];
  });
  const lines = answered
    .flatMap(({ lines: texts, process, replica }) =>
      texts.flatMap((text) => parseLine(text, { process, replica }) ?? []),
    )
    .toSorted((a, b) => a.at - b.at);
  return {
    lines: lines.slice(-limit),
    truncated: lines.length > limit || answered.some(({ truncated }) => truncated),
    replicas: present.map(({ id, kind, host }) => {
      const answer = answers.get(id);
      const state = answer === undefined ? "unreachable" : answer.kept ? "answered" : "keeps_none";
      return { process: kind, replica: id, host, state, dropped: answer?.dropped ?? 0 };
    }),
    settings: answered.map(({ process, replica, version, settings }) => ({ process, replica, version, settings })),
  };
}
