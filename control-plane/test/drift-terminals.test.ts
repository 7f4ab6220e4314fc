// What becomes of terminals is evidence about the way to their node.

import type { CallError } from "@holdfast/contracts/client";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { reportTerminalFailure } from "@holdfast/contracts/endpoints/terminals";
import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import { createLog } from "@holdfast/service/log";
import { describe, expect, it } from "vitest";
import { observeEnded } from "../src/drift/observers/terminals.ts";
import { endTerminals } from "../src/terminals/end-terminals.ts";
import {
  api,
  claim,
  client,
  closedEvent,
  kelp,
  mint,
  openSession,
  place,
  prepareTerminals,
  refusal,
  reportEvents,
  step,
  superuser,
  system,
} from "./support/terminals.ts";

prepareTerminals();

const explained = () => api.operator(kelp.id)(explainNode, { params: { node_id: place.node.id } });
const access = async () => (await explained()).layers.access;
const reasons = async () => (await explained()).causes.map(({ reason }) => reason);
const observed = async () => (await explained()).evidence.filter(({ kind }) => kind === "terminal");

/** Claims a token and reports that the opening failed, as the gateway does. */
async function fail(code: TerminalFailureCode, ...steps: Parameters<typeof step>[0][]): Promise<string> {
  const { token, session_id, correlation_id } = await mint();
  await claim(token);
  const failed = { type: "failed", at: new Date().toISOString(), code, detail: "as seen", ended: false } as const;
  await reportEvents(session_id, ...steps.map((one) => step(one)), { ...failed, correlation_id });
  return correlation_id;
}

describe("the way to a node's shells", () => {
  it("DRIFT-05 is not known before a terminal was opened, works with one, and stays so when the shell ends", async () => {
    expect(await access()).toBe("unknown");
    const id = await openSession();
    await expect.poll(access).toBe("working");
    await reportEvents(id, closedEvent());
    expect(await reasons()).toEqual([]);
    expect(await observed()).toMatchObject([{ value: "ready", observer: "gateway" }]);
  });

  it.for([
    ["terminal_node_stream_timeout", "terminal_node_stream_timeout"],
    ["terminal_binding_unavailable", "terminal_gateway_upgrade_failed"],
    ["terminal_open_without_stream", "terminal_open_without_stream"],
    ["terminal_node_stream_mtls_failed", "terminal_node_stream_mtls_failed"],
    ["terminal_env_profile_drift", "endpoint_profile_drift"],
    ["terminal_pty_failed", "terminal_pty_failed"],
  ] as const)(
    "DRIFT-07 TERM-09 a terminal that failed with %s names it, until one opens",
    async ([code, reason]) => {
      const correlationId = await fail(code, "browser_ws_ready", "terminal_open_sent");
      await expect.poll(reasons).toEqual([reason]);
      expect(await observed()).toMatchObject([
        { value: code, observer: "gateway", detail: { step: "terminal_open_sent" } },
      ]);
      // It may be about a user, and others see the node, too.
      expect(JSON.stringify(await explained())).not.toContain("as seen");
      const [row] = await superuser`
      SELECT correlation_id FROM node_observations WHERE node_id = ${place.node.id} AND kind = 'terminal'`;
      expect(row).toEqual({ correlation_id: correlationId });
      await openSession();
      await expect.poll(reasons).toEqual([]);
      expect(await access()).toBe("working");
    },
  );

  it("DRIFT-07 TERM-09 is what a client says that cannot reach the gateway", async () => {
    const { session_id: terminal_id } = await mint();
    const body = { code: "terminal_public_route_missing" as const };
    await client(reportTerminalFailure, { params: { terminal_id }, body });
    await expect.poll(reasons).toEqual(["terminal_public_route_missing"]);
    expect(await observed()).toMatchObject([{ observer: "client" }]);
  });

  it("DRIFT-07 TERM-09 is noticed where a terminal neither opened nor failed in time", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await superuser`
      UPDATE terminal_sessions SET opening_until = now() - interval '2 minutes' WHERE id = ${session_id}`;
    const signals = { publish: () => undefined };
    const log = createLog({ process: "test", level: "silent" });
    await endTerminals(system, signals, log, observeEnded({ system, signals }));
    expect(await reasons()).toEqual(["terminal_ui_connecting_stuck"]);
  });

  it("DRIFT-07 TERM-09 a failed allocation permits no terminal; one that was released is nobody's fault", async () => {
    const set = (status: string) =>
      superuser`
        UPDATE allocations SET status = ${status}, reason = '{"code": "executor_failed"}' WHERE id = ${place.allocationId}`;
    await set("releasing");
    expect(await refusal(mint())).toMatchObject({ code: "terminal_token_mint_failed" });
    await set("failed");
    const { envelope } = (await mint().catch((reason: unknown) => reason)) as CallError;
    await expect.poll(reasons).toEqual(["terminal_token_mint_failed"]);
    const rows = await superuser`
      SELECT correlation_id FROM node_observations WHERE node_id = ${place.node.id} AND kind = 'terminal'`;
    expect(rows).toEqual([{ correlation_id: envelope.correlation_id }]);
    expect((await explained()).causes).toMatchObject([{ user_state: "normal" }]);
  });

  it("DRIFT-05 is not judged by what users do: limits, tokens used twice, shells closed on purpose", async () => {
    await openSession();
    await expect.poll(access).toBe("working");
    for (const code of [
      "terminal_sessions_exhausted",
      "terminal_token_refused",
      "terminal_gateway_draining",
    ] as const) {
      await fail(code);
    }
    await fail("terminal_pty_failed");
    await expect.poll(reasons).toEqual(["terminal_pty_failed"]);
    const values = await superuser<{ value: string }[]>`
      SELECT value FROM node_observations WHERE node_id = ${place.node.id} AND kind = 'terminal' ORDER BY observed_at`;
    expect(values.map(({ value }) => value)).toEqual(["ready", "terminal_pty_failed"]);
  });
});
