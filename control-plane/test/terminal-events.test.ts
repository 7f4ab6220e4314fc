// What gateways, nodes and clients report about terminals, and when a node's stream is let in.

import type { Client } from "@holdfast/contracts/client";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { closeTerminal, reportTerminalFailure } from "@holdfast/contracts/endpoints/terminals";
import { admitNodeStream } from "@holdfast/contracts/internal/endpoints";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { tokenFor } from "../../testkit/api/api.ts";
import { enrollGateway } from "../../testkit/api/services.ts";
import { newPlace, type Place } from "../../testkit/api/terminals.ts";
import {
  api,
  auditOf,
  byCorrelationId,
  claim,
  client,
  closedEvent,
  gateway,
  kelp,
  metric,
  mint,
  openSession,
  place,
  prepareTerminals,
  refusal,
  reportEvents,
  show,
  step,
  superuser,
} from "./support/terminals.ts";

prepareTerminals();

describe("events from the gateway", () => {
  it.for([
    ["reason", { reason: "odd\0reason" }],
    ["signal", { exit: { code: null, signal: "SIG\0" } }],
  ] as const)(
    "TERM-08 is refused with a %s that no database keeps, and never a fault to try again",
    async ([, odd]) => {
      const sessionId = await openSession();
      expect(await reportEvents(sessionId, { ...closedEvent(), ...odd })).toMatchObject({
        status: 400,
        body: { code: "invalid_request" },
      });
      await reportEvents(sessionId, closedEvent());
      expect(await show(sessionId)).toMatchObject({ state: "closed" });
    },
  );

  it("TERM-08 update the chain, the audit and the metrics once, however often they are reported", async () => {
    const { token, session_id, correlation_id } = await mint();
    await claim(token);
    const before = await metric("holdfast_terminals_opened_total");
    const events = [
      step("browser_ws_ready"),
      step("terminal_open_sent"),
      step("node_stream_connected"),
      step("pty_ready"),
      { type: "attached", at: new Date().toISOString(), user_key: "token:x" } as const,
    ];
    for (let time = 0; time < 2; time += 1) expect((await reportEvents(session_id, ...events)).status).toBe(204);
    expect(await show(session_id)).toMatchObject({ state: "open", attached: true, failure: null });
    expect(Object.keys((await show(session_id)).chain)).toHaveLength(5);
    const end = { ...closedEvent(), correlation_id };
    for (let time = 0; time < 2; time += 1) await reportEvents(session_id, end);
    expect(await show(session_id)).toMatchObject({ state: "closed", attached: false, exit: { code: 0 } });
    expect(await auditOf(correlation_id)).toEqual([
      "terminal.create_token allowed",
      "terminal.open allowed",
      "terminal.attach allowed",
      "terminal.close allowed",
    ]);
    expect(await metric("holdfast_terminals_opened_total")).toBe(before + 1);
    expect(await metric("holdfast_terminal_open_seconds_count")).toBe(before + 1);
  });

  it("TERM-09 leaves a failure on the terminal, in the audit and in the metrics, by its code", async () => {
    const { token, session_id, correlation_id } = await mint();
    await claim(token);
    const series = 'holdfast_terminal_failures_total{code="terminal_node_stream_timeout"';
    const before = await metric(series);
    const failed = { type: "failed", at: new Date().toISOString(), code: "terminal_node_stream_timeout" } as const;
    const event = { ...failed, detail: "no stream", ended: true, correlation_id };
    for (let time = 0; time < 2; time += 1) await reportEvents(session_id, event);
    const session = await show(session_id);
    expect(session).toMatchObject({
      state: "failed",
      failure: { code: failed.code, hop: "node_terminal_reachability", owner: "network", detail: "no stream" },
    });
    expect(session.chain).toEqual({
      token_ready: { at: expect.any(String), correlation_id },
      failed: { at: failed.at, correlation_id },
    });
    expect(await auditOf(correlation_id)).toEqual([
      "terminal.create_token allowed",
      "terminal.fail failed terminal_node_stream_timeout",
    ]);
    expect(await metric(series)).toBe(before + 1);
  });

  it.for([
    ["terminal_pty_failed", "failed", "terminal.close failed terminal_pty_failed"],
    ["terminal_stream_lost", "failed", "terminal.close failed terminal_stream_lost"],
    ["terminal_node_revoked", "failed", "terminal.close failed terminal_node_revoked"],
    ["terminal_idle", "closed", "terminal.close allowed"],
    ["terminal_allocation_released", "closed", "terminal.close allowed"],
  ] as const)("TERM-08 after it was ready keeps that it ended by %s, as %s", async ([code, state, audited]) => {
    const series = `holdfast_terminal_failures_total{code="${code}"`;
    const before = await metric(series);
    const session_id = await openSession();
    const ended = { ...closedEvent(code, "The holder was killed."), correlation_id: `connection-${session_id}` };
    for (let time = 0; time < 2; time += 1) await reportEvents(session_id, ended);
    const { hop, owner } = terminalFailures[code];
    const { correlation_id } = ended;
    const session = await show(session_id);
    expect(session).toMatchObject({
      state,
      failure: { code, hop, owner, detail: "The holder was killed.", correlation_id },
    });
    expect(session.chain.failed).toEqual(state === "failed" ? { at: ended.at, correlation_id } : undefined);
    expect(await auditOf(correlation_id)).toEqual([audited]);
    expect(await metric(series)).toBe(before + (state === "failed" ? 1 : 0));
    expect((await byCorrelationId(correlation_id)).map(({ id }) => id)).toEqual([session_id]);
  });

  it("TERM-08 is stored in order when it comes in pieces at the same time", async () => {
    const session_id = await openSession();
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    await Promise.all([
      reportEvents(session_id, { type: "attached", at: at(0), user_key: "k" }),
      reportEvents(session_id, { type: "detached", at: at(5) }),
      reportEvents(session_id, { type: "attached", at: at(10), user_key: "k" }),
    ]);
    expect(await show(session_id)).toMatchObject({ state: "open", attached: true });
  });

  it("TERM-08 is refused for a terminal that never was", async () => {
    const { status, body } = await reportEvents(uuidv7(), step("pty_ready"));
    expect([status, body["code"]]).toEqual([409, "terminal_session_unknown"]);
  });
});

describe("a node's stream", () => {
  const admit = (sessionId: string, nodeId = place.node.id, serial = "00", by = gateway) =>
    by.ask(admitNodeStream, { params: { session_id: sessionId }, body: { node_id: nodeId, serial } });

  it("TERM-04 is let in for a terminal of that node, also at a gateway that was restarted", async () => {
    const session_id = await openSession();
    await reportEvents(session_id, { type: "attached", at: new Date().toISOString(), user_key: "" });
    expect(await show(session_id)).toMatchObject({ attached: true, detached_at: null });
    const restarted = await enrollGateway(api);
    const { status, body } = await admit(session_id, place.node.id, "00", restarted);
    expect(status).toBe(200);
    expect(body["grant"]).toMatchObject({ session_id, purpose: "attach", node_id: place.node.id });
    expect(await show(session_id), "its client went with the other gateway").toMatchObject({
      ...{ state: "open", attached: false, detached_at: expect.any(String) },
    });
    await restarted.announce({ terminal_url: "ws://127.0.0.1:3998/v1/terminal" });
    expect((await mint(client, place, { session_id })).url).toContain(":3998/");
    await superuser`DELETE FROM gateways WHERE id = ${restarted.id}`;
  });

  it("TERM-04 is refused for a terminal of another node, one that is to close, and one that has ended", async () => {
    const session_id = await openSession();
    const elsewhere = await newPlace(api, superuser, kelp);
    const unknown = { status: 409, body: { code: "terminal_session_unknown" } };
    expect(await admit(session_id, elsewhere.node.id)).toMatchObject(unknown);
    expect(await admit(uuidv7())).toMatchObject(unknown);
    await client(closeTerminal, { params: { terminal_id: session_id } });
    expect(await admit(session_id)).toMatchObject(unknown);
    await reportEvents(session_id, closedEvent("terminal_closed"));
    expect(await admit(session_id)).toMatchObject(unknown);
  });

  it("TERM-04 is refused to a node, or a certificate, that was revoked", async () => {
    const session_id = await openSession();
    const serial = await serialOf(place);
    expect((await admit(session_id, place.node.id, serial)).status).toBe(200);
    const revoke = { params: { node_id: place.node.id }, body: { change: "revoke" } } as const;
    await api.operator(kelp.id)(changeNode, revoke);
    expect(await admit(session_id, place.node.id, serial)).toMatchObject({
      status: 401,
      body: { code: "identity_revoked", details: { reason: "terminal_node_revoked" } },
    });
    expect((await admit(session_id, uuidv7())).body["code"]).toBe("identity_revoked");
  });

  async function serialOf({ node }: Place): Promise<string> {
    const [row] = await superuser`SELECT serial FROM node_certificates WHERE node_id = ${node.id}`;
    return String(row?.["serial"]);
  }
});

describe("failures from a client", () => {
  const report = (terminalId: string, as: Client = client, correlationId: string = uuidv7()) =>
    as(reportTerminalFailure, {
      correlationId,
      params: { terminal_id: terminalId },
      body: { code: "terminal_public_route_missing", detail: "no answer from /healthz" },
    });

  it("TERM-09 is a failure like any other: on the terminal, in the audit, in the metrics", async () => {
    const series = 'holdfast_terminal_failures_total{code="terminal_public_route_missing"';
    const before = await metric(series);
    const { token, session_id, correlation_id } = await mint();
    await report(session_id, client, correlation_id);
    await report(session_id);
    expect(await show(session_id)).toMatchObject({
      state: "failed",
      failure: { code: "terminal_public_route_missing", hop: "terminal_public_route", correlation_id },
    });
    expect(await auditOf(correlation_id)).toEqual([
      "terminal.create_token allowed",
      "terminal.fail failed terminal_public_route_missing",
      "terminal.report allowed",
    ]);
    expect(await metric(series)).toBe(before + 1);
    expect((await claim(token)).status).toBe(401);
  });

  it("TERM-10 end no open shell, and cannot be reported for another person's terminal", async () => {
    const session_id = await openSession();
    await report(session_id);
    expect((await show(session_id)).state).toBe("open");
    const another = api.as(await tokenFor(api, kelp, "owner"));
    expect(await refusal(report(session_id, another))).toMatchObject({ status: 403, code: "forbidden" });
  });
});
