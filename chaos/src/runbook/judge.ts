// Judges what a drill gathered. Pure, and total: every field of the evidence is compared with what it must be.

import { compare, isUuidv7 } from "../judge.ts";
import type { Drill, DrillEvidence, PreflightSeen } from "./drill.ts";
import { cellsOf } from "./rows.ts";

/** What the product promises, and the time of a busy machine. */
const REFUSED_SECONDS = 240;
const RECOVERED_SECONDS = 720;

/** Of a user who is not refused. */
const SERVED = { exit_code: 0, code: "", hop: null, next_step: /^$/ };

export function judgeDrill({ expect, rows, before, after }: Drill, evidence: DrillEvidence): string[] {
  const { user, page, preflight, cells, retry, node_id } = evidence;
  const wanted = { ...before, ...after };
  const named = cellsOf(rows.map(({ row }) => row));
  const failed = { result: "failed", exit_code: 1, ...expect.preflight };
  const nothing = { failed_hop: null, symptom_hop: null, signal: null, owner: null };
  const hasId = expect.page.id !== false;
  const request = expect.user === "served" ? SERVED : { exit_code: 1, ...expect.user };
  return [
    ...compare("the user's exit code", user.exit_code, request.exit_code),
    ...compare("the user's error", user.code, request.code),
    ...compare("the hop in the user's error", user.hop, request.hop),
    ...matches("the user's next step", user.next_step, request.next_step),
    ...ids("the user's error", user),
    ...soon("the user was refused", user.seconds, REFUSED_SECONDS),
    ...compare("the hop on the dashboard", page.hop, expect.page.hop),
    ...compare("the signal on the dashboard", page.signal, expect.page.signal),
    ...(hasId ? ids("the dashboard", page) : compare("ids on the dashboard", idsIn(page), [null, null])),
    ...judgePreflight("before the repair", preflight.before, failed, node_id),
    ...judgePreflight("after the repair", preflight.after, { result: "ready", exit_code: 0, ...nothing }, node_id),
    ...compare("what is captured", Object.keys(cells).toSorted(), Object.keys(wanted).toSorted()),
    ...named.filter((name) => !(name in wanted)).map((name) => `nobody captures ${name}`),
    ...Object.entries(wanted).flatMap(([name, { is }]) => matches(name, cells[name], is)),
    ...compare("the retry's exit code", retry.exit_code, 0),
    ...ids("the retry", retry),
    ...soon("the retry ended", retry.seconds, RECOVERED_SECONDS),
    ...(isUuid(node_id) ? [] : [`the node's id is ${node_id}`]),
  ];
}

type ExpectedPreflight = Partial<PreflightSeen>;

function judgePreflight(when: string, seen: PreflightSeen, expected: ExpectedPreflight, node: string): string[] {
  const { correlation_id, audit_correlation_id, node_id, ...rest } = seen;
  return [
    ...compare(`preflight ${when}`, rest, expected),
    ...compare(`preflight ${when}: node`, node_id, node),
    ...ids(`preflight ${when}`, { correlation_id, audit_correlation_id }),
  ];
}

type Ids = { correlation_id: string | null; audit_correlation_id: string | null };
const idsIn = ({ correlation_id, audit_correlation_id }: Ids) => [correlation_id, audit_correlation_id];

/** Point three of CHAOS-02: the id that is shown is the one in the audit. */
function ids(what: string, { correlation_id, audit_correlation_id }: Ids): string[] {
  if (!isUuidv7(correlation_id)) return [`${what}: correlation id is ${correlation_id}`];
  return compare(`${what}: id in the audit`, audit_correlation_id, correlation_id);
}

function matches(what: string, text: string | null | undefined, pattern: RegExp): string[] {
  return typeof text === "string" && pattern.test(text) ? [] : [`${what} is ${JSON.stringify(text)}`];
}

function soon(what: string, seconds: number, most: number): string[] {
  return seconds >= 0 && seconds <= most ? [] : [`${what} after ${seconds} s; at most ${most} s are allowed`];
}

const isUuid = (text: string | null) => typeof text === "string" && /^[0-9a-f-]{36}$/.test(text);
