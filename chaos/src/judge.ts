// Judges what a scenario gathered. Pure, and total: every field of the evidence is compared with what it must be, and
// every difference is named.

import type { Evidence, Look, Sighting } from "./evidence.ts";
import { causesOf, type ExpectedSighting, traceFor, wordsFor } from "./expectations.ts";

export type Expected = {
  /** In the order in which they are looked for; the first names the scenario's hop and signal. */
  sightings: readonly ExpectedSighting[];
  /** On the node's page before the repair, where that is not what the dashboard's sightings are. */
  before?: Partial<Look>;
  /** Of the failure matrix: what the page must classify it as before the repair, and what it must not. None: nothing. */
  rows?: readonly string[];
  /** What the host may say besides, or not, by chance: it is left out of what is gathered. */
  beside?: string;
};

/** The longest that an agent waits between two attempts, whatever it was asked to, and a task after that. */
const RECOVERED_SECONDS = 90;
/**
 * So many times as long on a busy machine, where labs share two cores with everything else. How soon a cause is named is
 * measured by the matrix, against the budgets of its rows.
 */
const BUSY = 8;
/** An incident's id is of a request that was under way when the fault began, or of a later one. */
const ID_SECONDS = { from: -20, to: 900 };

/** What a look must show once the fault has had all its effects. */
export function lookAtFault(expected: Expected): Look {
  const codes = (by: Sighting["by"]) => expected.sightings.filter((one) => one.by === by).map(({ code }) => code);
  const seen = codes("dashboard");
  const connection = seen.includes("connection_lost") ? "offline" : undefined;
  return {
    connection: connection ?? (seen.includes("heartbeat_stale") ? "stale" : "online"),
    attention: seen,
    causes: causesOf(expected.rows ?? []),
    host: codes("host"),
    ...expected.before,
  };
}

/** And after the repair. */
export const lookAtHealth: Look = { connection: "online", attention: [], causes: [], host: [] };

/** What is waited for. The causes are the attention items themselves, in other words: there is no more to wait for. */
export const isPageAs = (seen: Omit<Look, "host">, { connection, attention }: Look) =>
  seen.connection === connection && compare("", seen.attention.toSorted(), attention.toSorted()).length === 0;
export const isHostAs = (host: readonly string[], wanted: Look) =>
  compare("", host.toSorted(), wanted.host.toSorted()).length === 0;

export function judge(expected: Expected, { sightings, before, after, retry, forbidden }: Evidence): string[] {
  return [
    ...compare("the number of sightings", sightings.length, expected.sightings.length),
    ...expected.sightings.flatMap((one, index) => judgeSighting(one, sightings[index])),
    ...compareLooks("before the repair", before, lookAtFault(expected)),
    ...compareLooks("after the repair", after, lookAtHealth),
    ...compare("what was given as a cause and must not be", forbidden, []),
    ...compare("the retry's status", retry.status, "completed"),
    ...compare("the retry's exit code", retry.exit_code, 0),
    ...(isUuidv7(retry.correlation_id) ? [] : [`the retry's correlation id is ${retry.correlation_id}`]),
    ...compare("the retry's id in the audit", retry.audit_correlation_id, retry.correlation_id),
    ...(isWithin(retry.seconds, { from: 0, to: BUSY * RECOVERED_SECONDS })
      ? []
      : [
          `the retry ended ${retry.seconds} s after the repair; at most ${BUSY * RECOVERED_SECONDS} s are allowed`,
        ]),
  ];
}

function judgeSighting(expected: ExpectedSighting, seen: Sighting | undefined): string[] {
  const who = `${expected.by} ${expected.code}`;
  if (!seen) return [`${who}: not seen`];
  const words = wordsFor(expected);
  const trace = traceFor(expected);
  const { found, correlation_id: id } = seen;
  const nextStep = seen.next_step ?? "";
  const isReport = trace.audit?.action === "node.report";
  const audit = trace.audit && {
    ...trace.audit,
    correlation_id: id,
    hop: isReport ? words.hop : null,
    signal: isReport ? words.signal : null,
    owner: isReport ? words.owner : null,
  };
  const line = (message: string | null) => message && { message, correlation_id: id };
  const hostLine = trace.host_log.find((one) => one === found.host_log?.message) ?? trace.host_log[0] ?? null;
  return [
    ...compare(`${who}: observer`, seen.by, expected.by),
    ...compare(`${who}: code`, seen.code, expected.code),
    ...(["hop", "hop_detail", "signal", "owner"] as const).flatMap((field) =>
      compare(`${who}: ${field}`, seen[field], words[field]),
    ),
    ...(words.message.test(seen.message) ? [] : [`${who}: message is ${JSON.stringify(seen.message)}`]),
    ...(words.next_step.test(nextStep) ? [] : [`${who}: next step is ${JSON.stringify(nextStep)}`]),
    ...(trace.id ? (isUuidv7(id) ? [] : [`${who}: correlation id is ${id}`]) : compare(`${who}: id`, id, null)),
    ...judgeAge(who, seen.id_seconds, trace.id && trace.ofTheFault),
    ...(isWithin(seen.seconds, { from: 0, to: BUSY * expected.within })
      ? []
      : [`${who}: seen after ${seen.seconds} s; at most ${BUSY * expected.within} s are allowed`]),
    ...compare(`${who}: audit`, found.audit, audit),
    ...compare(
      `${who}: delivered record`,
      found.delivered,
      trace.delivered && { reasons: [trace.delivered], correlation_id: id },
    ),
    ...compare(`${who}: the api's log`, found.server_log, line(trace.server_log)),
    ...compare(`${who}: the agent's log`, found.host_log, line(hostLine)),
  ];
}

function judgeAge(who: string, seconds: number | null, ofTheFault: boolean): string[] {
  if (!ofTheFault) return compare(`${who}: age of its id`, seconds, null);
  if (seconds !== null && isWithin(seconds, ID_SECONDS)) return [];
  return [`${who}: its id was made ${seconds} s after the fault, so it is not of this incident`];
}

function compareLooks(when: string, seen: Look, expected: Look): string[] {
  return [
    ...compare(`${when}: connection`, seen.connection, expected.connection),
    ...compare(`${when}: attention`, seen.attention.toSorted(), expected.attention.toSorted()),
    ...compare(`${when}: causes`, seen.causes, expected.causes),
    ...compare(`${when}: diagnose on the host`, seen.host.toSorted(), expected.host.toSorted()),
  ];
}

export function compare(what: string, seen: unknown, expected: unknown): string[] {
  const [is, should] = [ordered(seen), ordered(expected)];
  return is === should ? [] : [`${what} is ${is}; it should be ${should}`];
}

/** Equal for equal data, whatever the order of its fields. */
function ordered(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

function isWithin(value: number, { from, to }: { from: number; to: number }): boolean {
  return value >= from && value <= to;
}

export function isUuidv7(id: string | null): boolean {
  return id !== null && /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id);
}
