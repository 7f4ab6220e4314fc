// Which gateway may report for a terminal, with two of them: the one that has it, and no other.

import {
  admitNodeStream,
  reportTerminalEvents,
  type TerminalEvent,
  type TerminalGrant,
  takeTerminal,
} from "@holdfast/contracts/internal/endpoints";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { enrollGateway, type TestGateway } from "../../testkit/api/services.ts";
import {
  api,
  auditOf,
  claim,
  client,
  closedEvent,
  gateway,
  mint,
  openSession,
  place,
  prepareTerminals,
  reportEvents,
  show,
  step,
} from "./support/terminals.ts";

prepareTerminals();

let second: TestGateway;
const SECOND_URL = "ws://127.0.0.1:3012/v1/terminal";

beforeAll(async () => {
  second = await enrollGateway(api);
});
beforeEach(async () => {
  await second.announce({ terminal_url: SECOND_URL });
});

const reportBy = (by: TestGateway, sessionId: string, ...events: TerminalEvent[]) =>
  by.ask(reportTerminalEvents, { params: { session_id: sessionId }, body: { events } });
const attached = (): TerminalEvent => ({
  ...{ type: "attached", at: new Date().toISOString(), user_key: "somebody" },
});
const failed = (correlation_id: string): TerminalEvent => ({
  ...{ type: "failed", at: new Date().toISOString(), code: "terminal_taken_over", detail: null },
  ...{ correlation_id, ended: false },
});
const admit = (by: TestGateway, sessionId: string, more: { again?: boolean } = {}) =>
  by.ask(admitNodeStream, {
    params: { session_id: sessionId },
    body: { node_id: place.node.id, serial: "00", ...more },
  });
const moved = { status: 409, body: { code: "terminal_moved" } };

describe("a terminal and two gateways", () => {
  it("TERM-07 is reported on by the gateway that has it, and by no other", async () => {
    const id = await openSession();
    for (const event of [attached(), closedEvent(), step("pty_ready")])
      expect(await reportBy(second, id, event)).toMatchObject(moved);
    expect(await show(id)).toMatchObject({ state: "open", attached: false });
    expect((await reportEvents(id, attached())).status).toBe(204);
    expect(await show(id)).toMatchObject({ attached: true });
  });

  it("TERM-07 TERM-08 keeps the error that a client got at another gateway in the audit", async () => {
    const id = await openSession();
    await second.ask(takeTerminal, { params: { session_id: id } });
    expect((await reportEvents(id, failed("older-client"))).status).toBe(204);
    expect((await auditOf("older-client")).join()).toContain("terminal_taken_over");
    expect(await show(id)).toMatchObject({ state: "open" });
  });

  it("TERM-07 is not failed by another gateway while it opens", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    expect(await reportBy(second, session_id, failed("stranger"))).toMatchObject(moved);
    expect(await show(session_id)).toMatchObject({ state: "opening" });
  });

  it("TERM-07 moves with a client that attaches elsewhere, once that gateway says so, not with its token", async () => {
    const id = await openSession();
    await reportEvents(id, attached());
    const { token } = await mint(client, place, { session_id: id, offset: 0 });
    await claim(token, second);
    expect((await reportEvents(id, { type: "detached", at: new Date().toISOString() })).status).toBe(204);
    expect((await second.ask(takeTerminal, { params: { session_id: id } })).status).toBe(204);
    expect(await reportEvents(id, closedEvent())).toMatchObject(moved);
    expect((await reportBy(second, id, attached())).status).toBe(204);
    expect(await show(id)).toMatchObject({ state: "open", attached: true });
  });

  it("TERM-07 moves with its node's stream, and a stream that was there before is not admitted again", async () => {
    const id = await openSession();
    expect((await admit(gateway, id)).status).toBe(200);
    expect((await admit(gateway, id, { again: true })).status).toBe(200);
    expect((await admit(second, id)).status).toBe(200);
    expect(await admit(gateway, id, { again: true })).toMatchObject(moved);
    expect((await reportBy(second, id, closedEvent())).status).toBe(204);
  });

  it("TERM-10 counts terminals at other gateways towards the limits, and the gateway's own not twice", async () => {
    await openSession();
    await openSession();
    const { token } = await mint();
    const { elsewhere } = (await claim(token, second)).body as unknown as TerminalGrant;
    expect(elsewhere.on_node).toBe(2);
    expect(elsewhere.of_user).toBeGreaterThanOrEqual(2);
    const again = await mint();
    expect((await claim(again.token)).body).toMatchObject({ elsewhere: { on_node: 1 } });
  });

  it("OPS-02 sends nobody to a gateway that said that it stops", async () => {
    const id = await openSession();
    const attach = () => mint(client, place, { session_id: id });
    expect((await attach()).url).not.toBe(SECOND_URL);
    expect((await gateway.announce({ leaving: true })).status).toBe(200);
    expect((await attach()).url).toBe(SECOND_URL);
    await gateway.announce();
    expect((await attach()).url).not.toBe(SECOND_URL);
  });
});
