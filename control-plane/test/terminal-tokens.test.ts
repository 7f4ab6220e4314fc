// Tokens for terminals at the api: who gets one, and that it works once.

import { createHash } from "node:crypto";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { closeTerminal } from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { claimTerminalToken, reportUnclaimedToken } from "@holdfast/contracts/internal/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { tokenFor } from "../../testkit/api/api.ts";
import { enrollGateway, TERMINAL_URL } from "../../testkit/api/services.ts";
import { newAllocation, newPlace } from "../../testkit/api/terminals.ts";
import {
  api,
  audited,
  auditOf,
  byCorrelationId,
  claim,
  client,
  closedEvent,
  gateway,
  grantOf,
  kelp,
  metric,
  mint,
  openSession,
  other,
  owner,
  place,
  prepareTerminals,
  refusal,
  reportEvents,
  show,
  superuser,
} from "./support/terminals.ts";

prepareTerminals();

describe("a token for a terminal", () => {
  it("TERM-01 of the agent's own account is for those who administer nodes: it may hold the keys of the host", async () => {
    await superuser`UPDATE allocations SET own_account = true WHERE id = ${place.allocationId}`;
    expect(await audited(mint())).toMatchObject({
      code: "terminal_token_mint_failed",
      details: { reason: "role_insufficient", role: "member" },
    });
    const admin = api.as(await tokenFor(api, kelp, "admin"));
    expect((await mint(admin)).token).toMatch(/^hfp_/);
    expect((await mint(api.operator(kelp.id))).token).toMatch(/^hfp_/);
  });

  it("TERM-01 is issued for an active allocation, with all that a client needs", async () => {
    const before = Date.now();
    const minted = await mint();
    expect(minted).toMatchObject({ url: TERMINAL_URL, deadline_seconds: 20 });
    expect(minted.token).toMatch(/^hfp_[A-Za-z0-9_-]{43}$/);
    const endsAt = Date.parse(minted.expires_at);
    expect(endsAt).toBeGreaterThanOrEqual(before + 59_000);
    expect(endsAt).toBeLessThanOrEqual(Date.now() + 61_000);
    expect(await auditOf(minted.correlation_id)).toEqual(["terminal.create_token allowed"]);
    const session = await show(minted.session_id);
    expect(session).toMatchObject({ state: "opening", correlation_id: minted.correlation_id, attached: false });
    expect(Object.keys(session.chain)).toEqual(["token_ready"]);
    expect(api.logged()).not.toContain(minted.token);
    const [stored] = await superuser`SELECT * FROM terminal_tokens t WHERE session_id = ${minted.session_id}`;
    expect(JSON.stringify(stored)).not.toContain(minted.token);
  });

  it.for(["requested", "releasing", "released", "failed"])(
    "TERM-01 is refused with the reason for an allocation that is %s",
    async (status) => {
      await superuser`
        UPDATE allocations SET status = ${status}, reason = ${status === "failed" ? superuser.json({ code: "x" }) : null},
          released_at = ${status === "released" ? superuser`now()` : null} WHERE id = ${place.allocationId}`;
      const before = await metric('holdfast_terminal_failures_total{code="terminal_token_mint_failed"');
      const refused = await audited(mint());
      expect(refused).toMatchObject({
        status: 409,
        code: "terminal_token_mint_failed",
        details: { reason: `allocation_${status}` },
      });
      expect(refused.next_step).toMatch(/[.]$/);
      expect(await metric('holdfast_terminal_failures_total{code="terminal_token_mint_failed"')).toBe(before + 1);
      const { items } = await api.operator(kelp.id)(listAudit, { query: { target: place.allocationId } });
      expect(items[0]).toMatchObject({ action: "terminal.create_token", result: "failed" });
      expect(items[0]?.reason).toBe("terminal_token_mint_failed");
    },
  );

  it.for(["drain", "fence", "revoke"] as const)("TERM-01 is refused on a node after %s", async (change) => {
    await api.operator(kelp.id)(changeNode, { params: { node_id: place.node.id }, body: { change } });
    const state = { drain: "draining", fence: "quarantined", revoke: "revoked" }[change];
    expect(await audited(mint())).toMatchObject({
      code: "terminal_token_mint_failed",
      details: { reason: `node_${state}` },
    });
  });

  it("TERM-01 is refused for another organization's allocation as for none, and without the scope", async () => {
    const foreign = await newPlace(api, superuser, other);
    const unknown = await refusal(mint(client, { ...place, allocationId: uuidv7() }));
    expect(await refusal(mint(client, foreign))).toEqual(unknown);
    expect(unknown.code).toBe("not_found");
    const body = { name: "reader", role: "member", scopes: ["allocations:read"] } as const;
    const { token } = await api.operator(kelp.id)(createToken, { body: { ...body, scopes: [...body.scopes] } });
    expect(await audited(mint(api.as(token)))).toMatchObject({ status: 403, code: "forbidden" });
  });

  it("TERM-01 is refused while no gateway is there", async () => {
    await superuser`UPDATE gateways SET last_seen_at = now() - interval '31 seconds'`;
    expect(await audited(mint())).toMatchObject({ status: 503, code: "terminal_gateway_missing" });
    await gateway.announce();
    await mint();
  });

  it("TERM-01 is refused to whoever has too many that were not used", async () => {
    const own = api.as(await tokenFor(api, kelp, "admin"));
    for (let count = 0; count < 20; count += 1) await mint(own);
    const refused = await audited(mint(own));
    expect(refused).toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      details: { reason: "unused_tokens", limit: 20 },
    });
    expect(refused.details["retry_after_seconds"]).toBeGreaterThan(0);
    await mint();
    await superuser`UPDATE terminal_tokens SET expires_at = now() WHERE used_at IS NULL`;
    await mint(own);
  });

  it("TERM-10 for a shell that is there is for whoever opened it, and names the gateway that has it", async () => {
    const session_id = await openSession();
    const newer = await enrollGateway(api);
    await newer.announce({ terminal_url: "ws://127.0.0.1:3999/v1/terminal" });
    const minted = await mint(client, place, { session_id, offset: 4096 });
    expect(minted).toMatchObject({ session_id, url: TERMINAL_URL });
    expect(await grantOf(minted.token)).toMatchObject({ session_id, purpose: "attach", offset: 4096 });
    await superuser`UPDATE gateways SET last_seen_at = now() - interval '31 seconds' WHERE id = ${gateway.id}`;
    expect((await mint(client, place, { session_id })).url).toContain(":3999/");
    await superuser`DELETE FROM gateways WHERE id = ${newer.id}`;
  });

  it("TERM-10 leads to no shell of another person, allocation or tenant, nor to one that has ended", async () => {
    const session_id = await openSession();
    const another = api.as(await tokenFor(api, kelp, "owner"));
    const elsewhere = { ...place, ...(await newAllocation(superuser, kelp, place.node.id, owner)) };
    const foreignPlace = await newPlace(api, superuser, other);
    const stranger = api.as(await tokenFor(api, other, "owner"));
    const tries = [
      mint(another, place, { session_id }),
      mint(client, elsewhere, { session_id }),
      mint(stranger, foreignPlace, { session_id }),
      mint(client, place, { session_id: uuidv7() }),
    ];
    const refused = await Promise.all(tries.map(refusal));
    expect(new Set(refused.map(({ code, message }) => code + message)).size).toBe(1);
    expect(refused[0]).toMatchObject({ status: 409, code: "terminal_session_unknown" });
    await reportEvents(session_id, closedEvent());
    expect((await refusal(mint(client, place, { session_id }))).code).toBe("terminal_session_unknown");
  });
});

describe("claiming a token", () => {
  it("TERM-02 returns the owner and the limits of the terminal to the gateway", async () => {
    const { token, session_id, correlation_id } = await mint();
    const grant = await grantOf(token);
    expect(grant).toMatchObject({
      ...{ session_id, org_id: kelp.id, allocation_id: place.allocationId, node_id: place.node.id },
      ...{ correlation_id, purpose: "open", offset: null, deadline_seconds: 20 },
      limits: {
        idle_seconds: 3_600,
        detached_seconds: 600,
        longest_seconds: 86_400,
        per_user: 20,
        per_node: 200,
      },
    });
    expect(grant.user_key).toMatch(/^token:/);
  });

  it("TERM-02 works once, also when many try at the same moment", async () => {
    const another = await enrollGateway(api);
    for (let round = 0; round < 5; round += 1) {
      const { token, correlation_id } = await mint();
      const racing = Array.from({ length: 8 }, (_, index) => claim(token, index % 2 ? gateway : another));
      const statuses = (await Promise.all(racing)).map(({ status }) => status).sort();
      expect(statuses).toEqual([200, 401, 401, 401, 401, 401, 401, 401]);
      const trail = await auditOf(correlation_id);
      expect(trail.filter((one) => one === "terminal.open denied terminal_token_refused")).toHaveLength(7);
    }
  });

  it("AUDIT-01 records further uses of a used token, up to a limit", async () => {
    const { token, correlation_id } = await mint();
    await claim(token);
    for (let time = 0; time < 30; time += 1) expect((await claim(token)).status).toBe(401);
    expect(await auditOf(correlation_id)).toHaveLength(1 + 20);
  });

  it("TERM-02 works no more when its minute is over, nor ever for what is no token", async () => {
    const { token, session_id } = await mint();
    await superuser`UPDATE terminal_tokens SET expires_at = now() WHERE session_id = ${session_id}`;
    const before = await metric('holdfast_terminal_failures_total{code="terminal_token_refused"');
    for (const tried of [token, `${token}x`, "", "hfp_"]) {
      expect(await claim(tried)).toMatchObject({ status: 401, body: { code: "terminal_token_refused" } });
    }
    expect(await metric('holdfast_terminal_failures_total{code="terminal_token_refused"')).toBe(before + 4);
    expect(api.logged()).not.toContain(token);
  });

  const refused = async (token: string) => {
    const { status, body } = await claim(token);
    expect(status).toBe(401);
    return body["details"] as { reason: string; correlation_id: string };
  };

  it("TERM-08 that has expired fails the terminal that waits for it, under the id of the token", async () => {
    const { token, session_id, correlation_id } = await mint();
    await superuser`UPDATE terminal_tokens SET expires_at = now() WHERE session_id = ${session_id}`;
    expect(await refused(token)).toEqual({ reason: "terminal_token_refused", correlation_id });
    expect(await show(session_id)).toMatchObject({
      state: "failed",
      failure: {
        code: "terminal_token_refused",
        correlation_id,
        detail: expect.stringContaining("has expired"),
      },
    });
    expect(await auditOf(correlation_id)).toContain("terminal.fail failed terminal_token_refused");
  });

  it("TERM-08 that was used before changes nothing on the terminal it opened", async () => {
    const { token, session_id, correlation_id } = await mint();
    await claim(token);
    expect(await refused(token)).toEqual({ reason: "terminal_token_refused", correlation_id });
    expect(await show(session_id)).toMatchObject({ state: "opening", failure: null, correlation_id });
    expect(await auditOf(correlation_id)).toContain("terminal.open denied terminal_token_refused");
  });

  it("TERM-08 to attach that has expired is found on the shell, which goes on", async () => {
    const session_id = await openSession();
    const { token, correlation_id } = await mint(client, place, { session_id });
    await superuser`UPDATE terminal_tokens SET expires_at = now() WHERE correlation_id = ${correlation_id}`;
    expect((await refused(token)).correlation_id).toBe(correlation_id);
    expect(await show(session_id)).toMatchObject({ state: "open", failure: { correlation_id } });
    expect((await byCorrelationId(correlation_id)).map(({ id }) => id)).toEqual([session_id]);
  });

  it.for([
    ["the allocation was released", "terminal_allocation_released"],
    ["the node was quarantined", "terminal_node_quarantined"],
    ["it was closed", "terminal_closed"],
  ] as const)("TERM-02 is refused with the true reason when %s meanwhile", async ([what, reason]) => {
    const { token, session_id, correlation_id } = await mint();
    const close = { params: { terminal_id: session_id } };
    const quarantine = { params: { node_id: place.node.id }, body: { change: "fence" } } as const;
    if (reason === "terminal_closed") await client(closeTerminal, close);
    else if (reason === "terminal_node_quarantined") await api.operator(kelp.id)(changeNode, quarantine);
    else await superuser`UPDATE allocations SET status = 'releasing' WHERE id = ${place.allocationId}`;
    expect((await refused(token)).reason, what).toBe(reason);
    expect((await auditOf(correlation_id)).join()).toContain(reason);
    expect((await show(session_id)).state).not.toBe("opening");
  });

  const reportUnclaimed = async (token: string, correlation_id: string) => {
    const failed = {
      ...{ type: "failed", at: new Date().toISOString(), code: "terminal_token_unverified" },
      ...{ detail: null, correlation_id, ended: false },
    } as const;
    const token_hash = createHash("sha256").update(token).digest("base64url");
    const { status } = await gateway.ask(reportUnclaimedToken, { body: { token_hash, failed } });
    expect(status).toBe(204);
    return failed;
  };

  it("TERM-08 that never was is in the trail of the installation, also when it was not answered", async () => {
    await superuser`DELETE FROM rate_limits`;
    const correlationId = `stranger-${uuidv7()}`;
    const { status } = await gateway.ask(claimTerminalToken, { body: { token: "hfp_made-up" }, correlationId });
    expect(status).toBe(401);
    const late = `stranger-${uuidv7()}`;
    await reportUnclaimed("hfp_made-up", late);
    for (const id of [correlationId, late]) {
      const [event] = await superuser`SELECT reason, org_id FROM audit_events WHERE correlation_id = ${id}`;
      expect(event).toEqual({ reason: "terminal_token_refused", org_id: null });
    }
  });

  it("TERM-08 that was not answered is reported later: the terminal fails for that reason", async () => {
    const { token, session_id } = await mint();
    const correlation_id = `unanswered-${uuidv7()}`;
    const failed = await reportUnclaimed(token, correlation_id);
    expect(await show(session_id)).toMatchObject({
      state: "failed",
      failure: { code: failed.code, correlation_id },
    });
    expect(await auditOf(correlation_id)).toEqual(["terminal.fail failed terminal_token_unverified"]);
    expect((await byCorrelationId(correlation_id)).map(({ id }) => id)).toEqual([session_id]);
    expect((await claim(token)).status, "and is used up with it").toBe(401);
  });
});
