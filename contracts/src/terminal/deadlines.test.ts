// The limits of an opening nest, for every promised time that can be set; and no other file has one.

import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  agentWaitMs,
  apiWaitMs,
  clientConnectMs,
  clientWaitMs,
  gatewayRequestMs,
  gatewayWaitMs,
  PROBE_MS,
  PROMISED_SECONDS,
  RELAY_HANDSHAKE_MS,
  ROUTE_CHECK_MS,
  STREAM_AFTER_TASK_MS,
  STREAM_HANDSHAKE_MS,
  TASK_TIMEOUT_SECONDS,
  TOKEN_REQUEST_MS,
  TOKEN_SECONDS,
  taskSeconds,
} from "./deadlines.ts";

/** Time for a report to travel one hop and be read on a busy machine. */
const TRAVEL_MS = 400;
/** A task waits so long for a busy agent; its time counts from when the agent starts it. */
const DELIVERY_MS = 1_000;
/** An opening that has less time left than this gets its shell at once or not at all. */
const SHORT_MS = 3_000;

const settable = Array.from(
  { length: PROMISED_SECONDS.most - PROMISED_SECONDS.least + 1 },
  (_, index) => PROMISED_SECONDS.least + index,
);

describe("the limits of an opening", () => {
  it.for(settable)("TERM-05 nest, each with time for the report of the one inside: %s s promised", (promised) => {
    const promisedMs = promised * 1_000;
    const agent = agentWaitMs(taskSeconds(promisedMs) * 1_000);
    const limits = {
      agent,
      api: apiWaitMs(promisedMs),
      promised: promisedMs,
      gateway: gatewayWaitMs(promised),
      client: clientWaitMs(promised),
    };
    const order = Object.entries(limits);
    for (const [index, [name, limit]] of order.entries()) {
      const [outer, next] = order[index + 1] ?? ["", Number.POSITIVE_INFINITY];
      expect(limit + TRAVEL_MS, `${name} before ${outer}`).toBeLessThanOrEqual(next);
    }
    expect(limits.gateway, "the frame leaves within the timeout of TERM-05").toBeLessThan(30_000);
  });

  it("TERM-05 leave the agent time to report, whenever the task was made and however long it took to the node", () => {
    for (let left = PROMISED_SECONDS.least * 1_000; left <= PROMISED_SECONDS.most * 1_000; left += 50) {
      const agent = agentWaitMs(taskSeconds(left) * 1_000);
      const delivery = left < SHORT_MS ? 0 : DELIVERY_MS;
      expect(delivery + agent + TRAVEL_MS, `${left} ms left`).toBeLessThanOrEqual(apiWaitMs(left));
    }
  });

  it.for(settable)("TERM-05 leave the last word to who knows more: %s s promised", (promised) => {
    const promisedMs = promised * 1_000;
    // The api's own answer ends its request; the request's timeout only ends one that hangs.
    expect(gatewayRequestMs(promised)).toBeGreaterThan(gatewayWaitMs(promised) + TRAVEL_MS);
    // The queue does not end a task that the agent is still about to report.
    expect(TASK_TIMEOUT_SECONDS).toBeGreaterThan(taskSeconds(promisedMs));
    // A socket that does not open is given up while there is time to find out why.
    expect(clientConnectMs(promised) + TRAVEL_MS).toBeLessThan(clientWaitMs(promised));
  });

  it("TERM-01 give a token more time than an opening takes, and a request for one an end", () => {
    expect(TOKEN_SECONDS * 1_000).toBeGreaterThan(clientWaitMs(PROMISED_SECONDS.most));
    expect(TOKEN_REQUEST_MS).toBeLessThan(TOKEN_SECONDS * 1_000);
  });

  it("TERM-09 leave time to find out why, by default", () => {
    const promised = PROMISED_SECONDS.default;
    expect(STREAM_HANDSHAKE_MS, "a second address can be tried").toBeLessThan(
      agentWaitMs(taskSeconds(promised * 1_000) * 1_000) - 1_000,
    );
    expect(STREAM_AFTER_TASK_MS).toBeLessThan(gatewayWaitMs(promised));
    expect(clientConnectMs(promised) + ROUTE_CHECK_MS + TRAVEL_MS).toBeLessThan(clientWaitMs(promised));
    expect(ROUTE_CHECK_MS + TRAVEL_MS).toBeLessThan(PROBE_MS);
    expect(RELAY_HANDSHAKE_MS + TRAVEL_MS).toBeLessThan(STREAM_HANDSHAKE_MS);
  });
});

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** Where an opening passes through. */
const folders = [
  "control-plane/src/terminals",
  "gateway/src",
  "node-agent/src/terminals",
  "tasks/terminal.open",
  "terminal-client/src",
  "web/src/features/terminal",
  "cli/src/commands/terminal",
];
const sources = folders
  .flatMap((folder) => globSync(`${folder}/**/*.{ts,tsx,mjs}`, { cwd: root }))
  // Steps of workflows pass through the gateway too, and have nothing to do with an opening.
  .filter((path) => !/\.test\.tsx?$|^gateway\/src\/execution\//.test(path))
  .map((path) => [path, readFileSync(`${root}${path}`, "utf8")] as const);

/** Times in these folders that are not about opening a terminal, and so may be declared where they are used. */
const otherTimes = new Set([
  // control plane: how early a timer may fire
  "CLOCK_MS",
  // gateway: its link to the api, and its own start and stop
  ...["TIMEOUT_MS", "MOST_TIMEOUT_MS", "ANNOUNCE_MS", "SILENT_MS"],
  ...["READY_WITHIN_MS", "REPORT_WITHIN_MS", "LEAVE_WITHIN_MS", "DRAIN_MS"],
  // gateway: how bindings are kept in Redis
  ...["EXPIRY_MS", "RENEW_MS", "TRY_AGAIN_MS"],
  // agent: the processes that hold shells, and streams that broke
  ...["ORPHAN_SECONDS", "LONGEST_DETACHED_MS", "KEEP_SPARE_MS", "ANSWER_MS", "REFRESH_MS", "SPARE_AFTER_MS"],
  ...["DIAL_AGAIN_MS", "START_MS", "LOOK_MS", "OBEY_MS", "LAST_WISH_MS"],
  // clients: pauses between tries, and what the command line does around them
  ...["FIRST_PAUSE_MS", "LONGEST_PAUSE_MS", "SETTLED_MS", "SCRIPT_PATIENCE_MS", "CLOSE_WITHIN_MS", "PATIENCE_MS"],
  ...["PROMPT_WITHIN_MS", "CONFIRMED_WITHIN_SECONDS", "TICK_MS"],
]);

describe("files on the way of an opening", () => {
  it("TERM-05 declare no limit of their own", () => {
    const found = sources.flatMap(([path, source]) =>
      [...source.matchAll(/\bconst ([A-Z][A-Z_]*_(?:MS|SECONDS))\s*=/g)].map(([, name = ""]) => ({ path, name })),
    );
    expect(found.length, "constants seen").toBeGreaterThan(15);
    expect(found.filter(({ name }) => !otherTimes.has(name))).toEqual([]);
    const names = new Set(found.map(({ name }) => name));
    expect(
      [...otherTimes].filter((name) => !names.has(name)),
      "listed and no longer there",
    ).toEqual([]);
  });

  it("TERM-05 do not calculate with the promised time", () => {
    const calculates = /\b(?:deadline_?seconds|withinMs|within_seconds|left_ms|terminalOpenSeconds)\s*[-+*/]/i;
    expect(sources.length).toBeGreaterThan(60);
    const found = sources.flatMap(([path, source]) => (calculates.test(source) ? [path] : []));
    // The task's seconds become the agent's milliseconds.
    expect(found).toEqual(["tasks/terminal.open/execute.ts"]);
  });
});
