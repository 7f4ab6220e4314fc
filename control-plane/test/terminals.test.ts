// How terminals are listed and waited for, and how one ends that nobody may use any more.

import type { Client } from "@holdfast/contracts/client";
import { releaseAllocation } from "@holdfast/contracts/endpoints/allocations";
import { removeMember } from "@holdfast/contracts/endpoints/members";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { closeTerminal, getTerminal, listMyTerminals } from "@holdfast/contracts/endpoints/terminals";
import { createToken, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeEach, describe, expect, it } from "vitest";
import { addMember, startTestApi, tokenFor } from "../../testkit/api/api.ts";
import { enrollGateway, type Following, SERVICE_TOKEN } from "../../testkit/api/services.ts";
import { newPlace } from "../../testkit/api/terminals.ts";
import { endTerminals, removeOldTerminals } from "../src/terminals/end-terminals.ts";
import {
  api,
  claim,
  client,
  closedEvent,
  gateway,
  kelp,
  mint,
  openSession,
  other,
  place,
  prepareTerminals,
  refusal,
  reportEvents,
  show,
  superuser,
  system,
} from "./support/terminals.ts";

prepareTerminals();

describe("one's own terminals", () => {
  it("TERM-10 are those that count towards the limit, of all organizations, with when each ends by itself", async () => {
    const person = await addMember(api, kelp, `${uuidv7()}@kelp.example`, "member");
    const userId = person.me.id ?? "";
    await superuser`INSERT INTO memberships (org_id, user_id, role) VALUES (${other.id}, ${userId}, 'member')`;
    const [here, there] = [
      await newPlace(api, superuser, kelp, { userId }),
      await newPlace(api, superuser, other, { userId }),
    ];
    const [inKelp, inOther] = [person.client(kelp.id), person.client(other.id)];
    const first = await openSession(inKelp, here);
    const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
    const detachedAt = at(-60);
    await reportEvents(
      first,
      { type: "attached", at: at(-90), user_key: "" },
      { type: "detached", at: detachedAt },
    );
    const second = await openSession(inOther, there);
    await reportEvents(second, { type: "attached", at: at(0), user_key: "" });
    const ended = await openSession(inKelp, here);
    await reportEvents(ended, closedEvent());
    // No gateway has claimed it, so it does not count.
    await mint(inKelp, here);
    await openSession();
    const { items, limit } = await inKelp(listMyTerminals, {});
    expect(limit).toBe(20);
    expect(items).toMatchObject([
      {
        ...{ id: second, node_name: there.node.name, username: there.username, attached: true, detached_at: null },
        organization: { id: other.id },
      },
      {
        ...{ id: first, node_name: here.node.name, username: here.username, attached: false },
        ...{ organization: { id: kelp.id }, detached_at: detachedAt, ending: false },
        ends_at: new Date(Date.parse(detachedAt) + 600_000).toISOString(),
      },
    ]);
    const stranger = await addMember(api, kelp, `${uuidv7()}@kelp.example`, "admin");
    expect((await stranger.client(kelp.id)(listMyTerminals, {})).items, "an administrator's own").toEqual([]);
  });

  it("TERM-10 can be waited for until they have ended, by those who see them", async () => {
    const id = await openSession();
    const read = (as: Client, terminal_id = id, wait_seconds = 0) =>
      as(getTerminal, { params: { terminal_id }, query: { wait_seconds } });
    expect(await read(client)).toMatchObject({ id, state: "open", ending: false });
    const member = api.as(await tokenFor(api, kelp, "member"));
    const foreigner = api.as(await tokenFor(api, other, "owner"));
    const unknown = await refusal(read(client, uuidv7(), 25));
    expect(unknown).toMatchObject({ status: 404, code: "not_found" });
    for (const as of [member, foreigner]) expect(await refusal(read(as, id, 25))).toEqual(unknown);
    const closing = await client(closeTerminal, { params: { terminal_id: id } });
    expect(closing).toMatchObject({ state: "open", ending: true, closed_at: null });
    const [after] = await Promise.all([read(client, id, 25), reportEvents(id, closedEvent("terminal_closed"))]);
    expect(after).toMatchObject({ state: "closed", ending: false, ends_at: null, closed_at: expect.any(String) });
    expect(await read(client, id, 25), "at once for one that has ended").toEqual(after);
  });
});

describe("ending a terminal", () => {
  const closeRequest = (news: Following, sessionId: string) =>
    news.next((line) => line.type === "close_terminal" && line.session_id === sessionId);

  it("TERM-10 by its owner or an administrator is requested from the gateway until that reports the end", async () => {
    const news = await gateway.follow();
    const mine = await openSession();
    const [line, answer] = await Promise.all([
      closeRequest(news, mine),
      client(closeTerminal, { params: { terminal_id: mine } }),
    ]);
    expect(line).toMatchObject({ code: "terminal_closed" });
    expect(answer.id).toBe(mine);
    const lateComer = await gateway.follow();
    expect(await closeRequest(lateComer, mine)).toMatchObject({ code: "terminal_closed" });
    await reportEvents(mine, closedEvent("terminal_closed"));
    expect((await show(mine)).state).toBe("closed");
    const again = await client(closeTerminal, { params: { terminal_id: mine } });
    expect(again.state).toBe("closed");
    const theirs = await openSession();
    const member = api.as(await tokenFor(api, kelp, "member"));
    const admin = api.as(await tokenFor(api, kelp, "admin"));
    const close = { params: { terminal_id: theirs } };
    expect(await refusal(member(closeTerminal, close))).toMatchObject({ code: "not_found" });
    await Promise.all([closeRequest(news, theirs), admin(closeTerminal, close)]);
    news.stop();
    lateComer.stop();
  });

  it("TERM-10 is immediate if no gateway has claimed it", async () => {
    const { token, session_id } = await mint();
    const answer = await client(closeTerminal, { params: { terminal_id: session_id } });
    expect(answer).toMatchObject({ state: "closed", failure: null });
    expect((await claim(token)).status).toBe(401);
  });

  it("TERM-10 is published by every replica, whichever got the request", async () => {
    const env = { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN };
    const replica = await startTestApi({ database: api.database, env });
    const following = await enrollGateway(replica);
    const news = await following.follow();
    const session_id = await openSession();
    const close = { params: { terminal_id: session_id } };
    const [line] = await Promise.all([closeRequest(news, session_id), client(closeTerminal, close)]);
    expect(line).toMatchObject({ code: "terminal_closed" });
    news.stop();
    await replica.stop();
  });

  it("TERM-01 happens when the allocation is released", async () => {
    const news = await gateway.follow();
    const session_id = await openSession();
    const release = { params: { allocation_id: place.allocationId } };
    const [line] = await Promise.all([closeRequest(news, session_id), client(releaseAllocation, release)]);
    expect(line).toMatchObject({ code: "terminal_allocation_released" });
    news.stop();
  });

  it.for([
    ["fence", "terminal_node_quarantined"],
    ["revoke", "terminal_node_revoked"],
    ["retire", "terminal_node_retired"],
  ] as const)("TERM-08 happens when its node meets %s, as %s, and not when it drains", async ([change, code]) => {
    const news = await gateway.follow();
    const session_id = await openSession();
    const { id: node_id } = place.node;
    const operator = api.operator(kelp.id);
    await operator(changeNode, { params: { node_id }, body: { change: "drain" } });
    await mint(client, place, { session_id });
    const [line] = await Promise.all([
      closeRequest(news, session_id),
      operator(changeNode, { params: { node_id }, body: { change } }),
    ]);
    expect(line).toMatchObject({ code });
    expect(terminalFailures[code]).toMatchObject({ owner: "node", hop: "gateway_node_stream" });
    news.stop();
  });

  it("TERM-01 happens when the member leaves, with the token that the member made", async () => {
    const news = await gateway.follow();
    const person = await addMember(api, kelp, `p${uuidv7().slice(-6)}@kelp.example`, "member");
    const theirs = await newPlace(api, superuser, kelp, { userId: person.me.id ?? "" });
    const byPage = await openSession(person.client(kelp.id), theirs);
    const made = await person.client(kelp.id)(createToken, { body: { name: "cli", role: "member" } });
    const byToken = await openSession(api.as(made.token), theirs);
    const mine = await openSession();
    const removal = { params: { org_id: kelp.id, user_id: person.me.id ?? "" } };
    await api.operator(kelp.id)(removeMember, removal as never);
    expect(await closeRequest(news, byPage)).toMatchObject({ code: "terminal_access_ended" });
    expect(await closeRequest(news, byToken)).toMatchObject({ code: "terminal_api_token_ended" });
    expect((await mint(client, place, { session_id: mine })).session_id).toBe(mine);
    news.stop();
  });

  it("TERM-01 happens when the API token is revoked that opened it", async () => {
    const news = await gateway.follow();
    const made = await api.operator(kelp.id)(createToken, { body: { name: "short", role: "admin" } });
    const session_id = await openSession(api.as(made.token));
    await api.operator(kelp.id)(revokeToken, { params: { token_id: made.id } });
    expect(await closeRequest(news, session_id)).toMatchObject({ code: "terminal_api_token_ended" });
    news.stop();
  });
});

describe("terminals that no gateway reports on", () => {
  const log = createLog({ process: "test", level: "fatal" });
  const published: string[] = [];
  const signals = { publish: (_topic: string, ids: readonly string[]) => void published.push(...ids) };
  const reconcile = () => endTerminals(system, signals, log);
  const age = (id: string, column: "opening_until" | "ends_by" | "heard_at" | "close_asked_at", seconds: number) =>
    superuser`
      UPDATE terminal_sessions SET ${superuser(column)} = now() - ${seconds} * interval '1 second' WHERE id = ${id}`;

  beforeEach(async () => {
    await superuser`DELETE FROM terminal_sessions`;
  });

  it("TERM-05 end: without a failure if the token was never used, as stuck if it was", async () => {
    const { session_id: unused } = await mint();
    const { token, session_id: stuck } = await mint();
    await claim(token);
    expect(await reconcile()).toBe(0);
    for (const id of [unused, stuck]) await age(id, "opening_until", 61);
    expect(await reconcile()).toBe(2);
    expect(await show(unused)).toMatchObject({ state: "closed", failure: null });
    expect(await show(stuck)).toMatchObject({
      state: "failed",
      failure: { code: "terminal_ui_connecting_stuck" },
    });
    expect(published).toEqual(expect.arrayContaining([unused, stuck]));
    expect(await reconcile()).toBe(0);
  });

  it("TERM-10 end: beyond their longest time, and when a request to close got no response", async () => {
    const old = await openSession();
    const closing = await openSession();
    await client(closeTerminal, { params: { terminal_id: closing } });
    await age(old, "ends_by", 301);
    await age(closing, "close_asked_at", 61);
    expect(await reconcile()).toBe(2);
    for (const id of [old, closing]) expect((await show(id)).state).toBe("closed");
    const reasons = await superuser`SELECT close_reason FROM terminal_sessions ORDER BY close_reason`;
    expect(reasons.map((row) => row["close_reason"])).toEqual(["terminal_closed", "terminal_time_over"]);
  });

  it("TERM-10 end with their gateway, when the time is over in which their node could have found another", async () => {
    const session_id = await openSession();
    await age(session_id, "heard_at", 661);
    expect(await reconcile()).toBe(0);
    await superuser`UPDATE gateways SET last_seen_at = now() - interval '661 seconds'`;
    expect(await reconcile()).toBe(1);
    expect(await show(session_id)).toMatchObject({ state: "failed", failure: { code: "terminal_stream_lost" } });
  });

  it("are removed with their tokens when they are old", async () => {
    const kept = await openSession();
    const gone = await openSession();
    await reportEvents(gone, closedEvent());
    await superuser`UPDATE terminal_sessions SET closed_at = now() - interval '31 days' WHERE id = ${gone}`;
    await superuser`UPDATE terminal_tokens SET expires_at = now() - interval '61 minutes' WHERE session_id = ${kept}`;
    await superuser`INSERT INTO gateways VALUES (${uuidv7()}, 'ws://a/b', 'https://a', 0, now(), now() - interval '3 days')`;
    expect(await removeOldTerminals(system, { days: 30 })).toEqual({
      terminal_tokens: 1,
      terminal_sessions: 1,
      gateways: 1,
    });
    const left =
      await superuser`SELECT s.id, (SELECT count(*)::int FROM terminal_tokens) AS tokens FROM terminal_sessions s`;
    expect(left).toMatchObject([{ id: kept, tokens: 0 }]);
  });
});
