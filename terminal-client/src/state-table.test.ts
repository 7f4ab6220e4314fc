// Every cell of the client's state table: what each state does at each event, while a terminal is opened for the first time
// and while one that was lost is reconnected. A cell reads: the next phase, then the effects in order; "·" changes nothing.

import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import type { ServerFrame } from "@holdfast/contracts/terminal/frames";
import { describe, expect, it } from "vitest";
import { noticedFailure } from "./failures.ts";
import { step } from "./state.ts";
import type { Event, Grant, Lost, Open, Phase, Round, State } from "./states.ts";

type Cells = Record<Event["type"], string>;

const grant: Grant = {
  token: "t",
  url: "wss://g/v1/terminal",
  sessionId: "s1",
  correlationId: "c1",
  deadlineSeconds: 15,
};
const lost: Lost = { shell: "s1", url: grant.url, since: 0, attempt: 2, cause: "closed", failure: undefined };
const open: Open = { shell: "s1", url: grant.url, correlationId: "c1", since: 0, attempt: 0 };
const failure = noticedFailure("terminal_gateway_upgrade_failed", {});

function statesOf(round: Round): Record<Phase, State> {
  const granted = { round, grant, grantedAt: 0 };
  return {
    probing: { phase: "probing", lost, askedAt: 0 },
    asking: { phase: "asking", round },
    joining: { phase: "joining", ...granted },
    checking: { phase: "checking", detail: undefined, ...granted },
    waiting: { phase: "waiting", ...granted },
    ready: { phase: "ready", ...open },
    unresponsive: { phase: "unresponsive", ...open, node: { cause: "silent", since: "" } },
    pausing: { phase: "pausing", lost, until: 9 },
    stopped: { phase: "stopped", lost },
    failed: { phase: "failed", failure, shell: "s1", chain: {} },
    ended: { phase: "ended", exit: { code: 0, signal: null } },
  };
}

const events: { [T in Event["type"]]: Extract<Event, { type: T }> } = {
  granted: { type: "granted", grant, at: 1 },
  refused: { type: "refused", failure, at: 1 },
  opened: { type: "opened", at: 1 },
  frame: { type: "frame", frame: { type: "pong" }, at: 1 },
  closed: { type: "closed", at: 1 },
  silent: { type: "silent", at: 1 },
  checked: { type: "checked", reachable: true, at: 1 },
  alarm: { type: "alarm", at: 1 },
  nudge: { type: "nudge", at: 1 },
  try_again: { type: "try_again", at: 1 },
  stop: { type: "stop", at: 1 },
  new_shell: { type: "new_shell", at: 1 },
};

function cell(state: State, event: Event): string {
  const next = step(state, event);
  if (next.state === state && next.effects.length === 0) return "·";
  return [next.state.phase, ...next.effects.map((effect) => effect.do)].join(" ");
}

const rowOf = (state: State): Cells =>
  Object.fromEntries(Object.entries(events).map(([type, event]) => [type, cell(state, event)])) as Cells;

/** A person can have a new shell in every state. */
const unchanged: Cells = {
  ...{ granted: "·", refused: "·", opened: "·", frame: "·", closed: "·", silent: "·", checked: "·", alarm: "·" },
  ...{ nudge: "·", try_again: "·", stop: "·", new_shell: "asking disconnect request_token" },
};
const toCheck = "checking disconnect check_route";
const hurried = { try_again: "probing disconnect check_route", stop: "stopped disconnect" };

/** The same whether or not the terminal was lost before. */
const settled = {
  ready: { ...unchanged, closed: "pausing", silent: "pausing disconnect" },
  unresponsive: { ...unchanged, closed: "pausing", silent: "pausing disconnect" },
  pausing: {
    ...unchanged,
    ...{ alarm: "probing check_route", nudge: "probing check_route", try_again: "probing check_route" },
    stop: "stopped",
  },
  stopped: { ...unchanged, try_again: "probing check_route" },
  failed: { ...unchanged, try_again: "asking request_token" },
  ended: { ...unchanged, try_again: "asking disconnect request_token" },
  probing: { ...unchanged, checked: "asking request_token", alarm: "pausing disconnect", ...hurried },
};

const opening: Record<Phase, Cells> = {
  ...settled,
  asking: { ...unchanged, granted: "joining connect", refused: "failed", alarm: "failed disconnect" },
  joining: { ...unchanged, opened: "waiting", closed: toCheck, alarm: toCheck },
  checking: { ...unchanged, checked: "failed disconnect report", alarm: "failed disconnect report" },
  waiting: {
    ...unchanged,
    ...{ closed: "failed disconnect report", alarm: "failed disconnect report", silent: toCheck },
  },
};

const reconnecting: Record<Phase, Cells> = {
  ...settled,
  asking: {
    ...unchanged,
    granted: "joining connect",
    refused: "pausing",
    alarm: "pausing disconnect",
    ...hurried,
  },
  joining: { ...unchanged, opened: "waiting", closed: toCheck, alarm: toCheck, ...hurried },
  checking: { ...unchanged, checked: "pausing disconnect", alarm: "pausing disconnect", ...hurried },
  waiting: {
    ...unchanged,
    ...{ closed: "pausing disconnect", alarm: "pausing disconnect", silent: toCheck },
    ...hurried,
  },
};

const first: Round = { shell: undefined, askedAt: 0, chain: {}, lost: undefined };
const rounds = [
  ["opened for the first time", first, opening],
  ["reconnected", { ...first, shell: "s1", lost }, reconnecting],
] as const;

const errorFrame = (code: keyof typeof terminalFailures): ServerFrame => ({
  ...{ type: "error", code, ...terminalFailures[code], correlation_id: "c1" },
});
const frames: Record<Exclude<ServerFrame["type"], "error"> | "passing" | "final", ServerFrame> = {
  status: { type: "status", step: "pty_ready", at: "", ms: 1, correlation_id: "c1" },
  ready: { type: "ready", session_id: "s1", offset: 0, window: 1, replay: 0 },
  input: { type: "input", attachment: 1, from: 0 },
  ack: { type: "ack", bytes: 1 },
  exit: { type: "exit", code: 0, signal: null },
  unresponsive: { type: "unresponsive", cause: "silent", since: "" },
  responsive: { type: "responsive" },
  paused: { type: "paused", unacknowledged: 1 },
  pong: { type: "pong" },
  passing: errorFrame("terminal_gateway_draining"),
  final: errorFrame("terminal_access_ended"),
};
type FrameCells = Record<keyof typeof frames, string>;
const ignored: FrameCells = {
  ...{
    status: "·",
    ready: "·",
    input: "·",
    ack: "·",
    exit: "ended disconnect",
    unresponsive: "·",
    responsive: "·",
  },
  ...{ paused: "·", pong: "·", passing: "failed disconnect", final: "failed disconnect" },
};
const whileOpen: FrameCells = {
  ...ignored,
  ...{ unresponsive: "unresponsive", responsive: "ready", ready: "ready", passing: "pausing disconnect" },
};
const framesAt = [
  [
    "waiting for the first time",
    { phase: "waiting", round: first, grant, grantedAt: 0 },
    { ...ignored, status: "waiting", ready: "ready" },
  ],
  [
    "waiting after a loss",
    { phase: "waiting", round: { ...first, lost }, grant, grantedAt: 0 },
    { ...ignored, status: "waiting", ready: "ready", passing: "pausing disconnect" },
  ],
  ["ready", statesOf(first).ready, whileOpen],
  ["unresponsive", statesOf(first).unresponsive, whileOpen],
] as const satisfies readonly (readonly [string, State, FrameCells])[];

describe.for(rounds)("a terminal that is %s", ([, round, expected]) => {
  it.for(Object.keys(expected) as Phase[])(
    "TERM-05 TERM-10 does at every event what the table says: %s",
    (phase) => {
      expect(rowOf(statesOf(round)[phase])).toEqual(expected[phase]);
    },
  );
});

it.for(framesAt)("TERM-05 TERM-10 does at every frame what the table says: %s", ([, state, expected]) => {
  const cells = Object.entries(frames).map(([name, frame]) => [
    name,
    cell(state, { type: "frame", frame, at: 1 }),
  ]);
  expect(Object.fromEntries(cells)).toEqual(expected);
});

it("TERM-10 ignores frames in every state without an open connection", () => {
  const connected: Phase[] = ["waiting", "ready", "unresponsive"];
  for (const state of Object.values(statesOf(first)).filter(({ phase }) => !connected.includes(phase)))
    for (const frame of Object.values(frames))
      expect(cell(state, { type: "frame", frame, at: 1 }), `${state.phase} ${frame.type}`).toBe("·");
});

it("TERM-09 pauses instead of asking for a token while the gateway does not answer", () => {
  const unreachable: Event = { type: "checked", reachable: false, at: 1 };
  expect(cell(statesOf(first).probing, unreachable)).toBe("pausing");
  expect(cell(statesOf(first).checking, unreachable)).toBe("failed disconnect report");
});
