// Terminals at the api: who gets a token, that it works once, what the gateway requests and reports, and how a
// terminal ends that nobody may use any more. The gateway and the node are played by the test, over the
// real listeners.

import { createHash } from "node:crypto";
import { CallError, type Client } from "@holdfast/contracts/client";
import { releaseAllocation } from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { removeMember } from "@holdfast/contracts/endpoints/members";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import {
  closeTerminal,
  createTerminalToken,
  getTerminal,
  listMyTerminals,
  listTerminals,
  reportTerminalFailure,
  type TerminalSession,
} from "@holdfast/contracts/endpoints/terminals";
import { createToken, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import {
  admitNodeStream,
  awaitTerminalTask,
  claimTerminalToken,
  openTerminal,
  reportTerminalEvents,
  reportUnclaimedToken,
  type TerminalEvent,
  type TerminalGrant,
} from "@holdfast/contracts/internal/endpoints";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import {
  enrollGateway,
  type Following,
  SERVICE_TOKEN,
  TERMINAL_URL,
  type TestGateway,
} from "../../testkit/api/services.ts";
import {
  endTask,
  failedWith,
  newAllocation,
  newPlace,
  opened,
  type Place,
  sendProfileHeartbeat,
  type TestOwner,
  takeTask,
} from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { endTerminals, removeOldTerminals } from "../src/terminals/end-terminals.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;
let kelp: TestOrg;
let other: TestOrg;
let client: Client;
let gateway: TestGateway;
let place: Place;
let owner: TestOwner;

beforeAll(async () => {
  const env = { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_TERMINAL_OPEN_SECONDS: "20" };
  api = await startTestApi({ env });
  ({ superuser, system } = openRoles(api.database));
  kelp = await createOrg(api, "kelp");
  other = await createOrg(api, "other");
  const { id: tokenId, token } = await api.operator(kelp.id)(createToken, { body: { name: "kelp member" } });
  client = api.as(token);
  owner = { tokenId };
  gateway = await enrollGateway(api);
});

beforeEach(async () => {
  await superuser`DELETE FROM terminal_tokens`;
  await gateway.announce();
  place = await newPlace(api, superuser, kelp, owner);
});

const mint = (as: Client = client, at: Place = place, body: { session_id?: string; offset?: number } = {}) =>
  as(createTerminalToken, { params: { allocation_id: at.allocationId }, body });

const refusal = async (request: Promise<unknown>) => {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CallError)) throw new Error(`not refused: ${error}`);
  const { code, details, message, next_step } = error.envelope;
  return { status: error.status, code, details, message, next_step };
};

/** The same of a mint, whose correlation id leads to the audit with that code. */
const audited = async (request: Promise<unknown>) => {
  const error = await request.catch((reason: unknown) => reason);
  const refused = await refusal(Promise.reject(error));
  const { correlation_id } = (error as CallError).envelope;
  expect((await auditOf(correlation_id)).join()).toContain(refused.code);
  return refused;
};

const claim = (token: string, by = gateway) => by.ask(claimTerminalToken, { body: { token } });
const grantOf = async (token: string) => (await claim(token)).body as unknown as TerminalGrant;
const send = (sessionId: string, by = gateway) =>
  by.ask(openTerminal, { params: { session_id: sessionId }, body: { cols: 80, rows: 24 } });
const awaitTask = (sessionId: string, taskId: unknown, by = gateway) =>
  by.ask(awaitTerminalTask, { params: { session_id: sessionId }, body: { task_id: String(taskId) } });
/** The final response to the gateway: why no task was created, or how it ended. */
const open = async (sessionId: string, by = gateway) => {
  const sent = await send(sessionId, by);
  return sent.body["sent"] ? awaitTask(sessionId, sent.body["task_id"], by) : sent;
};
/** Leaves only this much of the time to open. */
const hurry = (sessionId: string, seconds: number) =>
  superuser`UPDATE terminal_sessions SET opening_until = now() + ${seconds} * interval '1 second' WHERE id = ${sessionId}`;
const reportEvents = (sessionId: string, ...events: TerminalEvent[]) =>
  gateway.ask(reportTerminalEvents, { params: { session_id: sessionId }, body: { events } });
const step = (name: Extract<TerminalEvent, { type: "step" }>["step"], at = new Date()): TerminalEvent => ({
  ...{ type: "step", step: name, at: at.toISOString() },
});

async function show(sessionId: string): Promise<TerminalSession> {
  const { items } = await api.operator(kelp.id)(listTerminals, {});
  const found = items.find(({ id }) => id === sessionId);
  if (!found) throw new Error(`no terminal ${sessionId}`);
  return found;
}

/** Creates and claims a token, and reports an open shell as the gateway does. */
async function openSession(as: Client = client, at: Place = place): Promise<string> {
  const { token, session_id } = await mint(as, at);
  await claim(token);
  await reportEvents(session_id, step("browser_ws_ready"), step("node_stream_connected"), step("pty_ready"));
  return session_id;
}

async function byCorrelationId(correlation_id: string) {
  return (await api.operator(kelp.id)(listTerminals, { query: { correlation_id } })).items;
}

async function auditOf(correlationId: string) {
  const { items } = await api.operator(kelp.id)(listAudit, { query: { correlation_id: correlationId } });
  return items.map(({ action, result, reason }) => [action, result, reason].filter(Boolean).join(" ")).reverse();
}

async function metric(line: string): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  const found = text.split("\n").find((one) => one.startsWith(line));
  return Number(found?.split(" ").at(-1) ?? 0);
}

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

const closedEvent = (reason = "exit", detail: string | null = null): TerminalEvent => ({
  ...{ type: "closed", at: new Date().toISOString(), reason, detail, correlation_id: "connection-1" },
  ...{ exit: reason === "exit" ? { code: 0, signal: null } : null, bytes_in: 10, bytes_out: 2_000 },
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

describe("having the node open it", () => {
  it("TERM-03 offers the node a task with all it needs, and returns how that ended", async () => {
    const { token, session_id, correlation_id } = await mint();
    await claim(token);
    const response = open(session_id);
    const task = await takeTask(place.node);
    expect(task).toMatchObject({ task_type: "terminal.open", correlation_id });
    expect(task.params).toMatchObject({
      ...{ session_id, allocation_id: place.allocationId, username: place.username, cols: 80, rows: 24 },
      ...{ correlation_id, detached_seconds: 600 },
    });
    expect((task.params as { within_seconds: number }).within_seconds).toBeLessThan(20);
    await endTask(place.node, task, opened);
    expect((await response).body).toEqual({ failure: null });
    const session = await show(session_id);
    expect(session).toMatchObject({ state: "opening", task_id: task.task_id });
    expect(Object.keys(session.chain).sort()).toEqual(["terminal_open_sent", "token_ready"]);
  });

  it.for([
    ["terminal_pty_failed", "failed", "terminal_pty_failed"],
    ["terminal_node_stream_mtls_failed", "failed", "terminal_node_stream_mtls_failed"],
    ["terminal_node_stream_timeout", "failed", "terminal_node_stream_timeout"],
    ["terminal_env_profile_drift", "failed", "terminal_env_profile_drift"],
    ["task_timed_out", "failed", "terminal_node_stream_timeout"],
    ["executor_failed", "failed", "terminal_pty_failed"],
    ["clock_skew", "refused", "terminal_open_not_taken"],
    ["capability_missing", "refused", "terminal_open_not_taken"],
    ["made_up", "failed", "terminal_pty_failed"],
  ] as const)("TERM-09 passes on %s, reported as %s, as %s", async ([reported, status, code]) => {
    const { token, session_id } = await mint();
    await claim(token);
    const response = open(session_id);
    await sendProfileHeartbeat(place.node, await newestProfile());
    const task = await takeTask(place.node);
    await endTask(place.node, task, failedWith(reported, "The shell /bin/fish is missing.", status));
    expect((await response).body).toEqual({ failure: { code, message: "The shell /bin/fish is missing." } });
  });

  it("TERM-09 reports at once that a node without a recent heartbeat is offline", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${place.node.id}`;
    const { body } = await open(session_id);
    expect(body).toMatchObject({ sent: false, failure: { code: "terminal_node_offline" } });
    expect((body["failure"] as { message: string }).message).toMatch(/ 1[2-9]\d seconds ago/);
    expect((await show(session_id)).task_id).toBeNull();
  });

  it("TERM-09 ID-14 takes a heartbeat from the future for no sign that the node is online", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() + interval '14 hours' WHERE node_id = ${place.node.id}`;
    const { body } = await open(session_id);
    await superuser`UPDATE node_presence SET heartbeat_at = now() WHERE node_id = ${place.node.id}`;
    expect(body).toMatchObject({
      failure: { code: "terminal_node_offline", message: expect.stringContaining("in the future") },
    });
  });

  it("TERM-09 says within the deadline that the node did not take the task, and takes it back", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await hurry(session_id, 5);
    const { body } = await open(session_id);
    expect(body).toMatchObject({ failure: { code: "terminal_open_not_taken" } });
    const { task_id } = await show(session_id);
    const [task] = await superuser`SELECT status FROM tasks WHERE id = ${task_id}`;
    expect(task?.["status"]).toBe("cancelled");
  });

  it("TERM-12 distinguishes a missing stream from one that was sent to an old address", async () => {
    const late = async (version: number) => {
      await sendProfileHeartbeat(place.node, version);
      const { token, session_id } = await mint();
      await claim(token);
      const first = open(session_id);
      const task = await takeTask(place.node);
      await expect.poll(async () => (await show(session_id)).task_id).toBe(task.task_id);
      // As a gateway repeats its request with little or none of its time left.
      await hurry(session_id, 1);
      const { body } = await open(session_id);
      await endTask(place.node, task, failedWith("task_cancelled", "", "cancelled"));
      await first;
      return (body["failure"] as { code: string }).code;
    };
    const present = await newestProfile();
    expect(await late(present)).toBe("terminal_node_stream_timeout");
    await gateway.announce({ node_url: "https://127.0.0.1:38443" });
    place = await newPlace(api, superuser, kelp, owner);
    expect(await late(present)).toBe("terminal_env_profile_drift");
    await gateway.announce();
  });

  it("TERM-09 says of a node that took the task that its stream did not come, also when the time is over", async () => {
    await sendProfileHeartbeat(place.node, await newestProfile());
    const { token, session_id } = await mint();
    await claim(token);
    const first = open(session_id);
    const task = await takeTask(place.node);
    await expect.poll(async () => (await show(session_id)).task_id).toBe(task.task_id);
    await hurry(session_id, -1);
    expect((await open(session_id)).body).toMatchObject({ failure: { code: "terminal_node_stream_timeout" } });
    const holding = `${task.task_id}:${task.generation}`;
    const path = place.node.path(`tasks/wait?wait=20&room=0&holding=${holding}`);
    expect((await place.node.client.ask({ path })).body["cancel"], "and is requested to stop").toEqual([
      task.task_id,
    ]);
    await endTask(place.node, task, failedWith("task_cancelled", "", "cancelled"));
    await first;
  });

  it("TERM-12 does not blame an old profile that names the same gateway", async () => {
    const before = await newestProfile();
    await superuser`
      INSERT INTO environment_profiles (name, version, content)
      SELECT name, version + 1, content FROM environment_profiles ORDER BY version DESC LIMIT 1`;
    const { token, session_id } = await mint();
    await claim(token);
    const response = open(session_id);
    await sendProfileHeartbeat(place.node, before);
    const task = await takeTask(place.node);
    await endTask(place.node, task, failedWith("terminal_node_stream_timeout", "No route."));
    expect((await response).body["failure"]).toMatchObject({ code: "terminal_node_stream_timeout" });
  });

  it("TERM-05 takes the task back when the gateway has gone", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    const leaving = await enrollGateway(api);
    const { body } = await send(session_id, leaving);
    const response = awaitTask(session_id, body["task_id"], leaving).catch(() => undefined);
    const task = await takeTask(place.node);
    leaving.client.close();
    await response;
    const holding = `${task.task_id}:${task.generation}`;
    const path = place.node.path(`tasks/wait?wait=20&room=0&holding=${holding}`);
    expect((await place.node.client.ask({ path })).body["cancel"]).toEqual([task.task_id]);
  });

  it("TERM-05 continues at another replica when the first one stops", async () => {
    const env = { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_TERMINAL_OPEN_SECONDS: "20" };
    const replica = await startTestApi({ database: api.database, env });
    const there = await enrollGateway(replica);
    const { token, session_id } = await mint();
    await claim(token);
    const first = open(session_id, there);
    const task = await takeTask(place.node);
    await replica.stop();
    expect(await first).toMatchObject({ status: 503, body: { code: "shutting_down" } });
    const second = open(session_id);
    await endTask(place.node, task, opened);
    expect((await second).body).toEqual({ failure: null });
  });

  it("TERM-05 knows no terminal that was not claimed, has ended, or never was", async () => {
    const { session_id } = await mint();
    const ended = await openSession();
    await reportEvents(ended, closedEvent());
    for (const id of [session_id, ended, uuidv7()]) {
      expect((await open(id)).body).toMatchObject({ failure: { code: "terminal_session_unknown" } });
    }
  });
});

async function newestProfile(): Promise<number> {
  const [row] = await superuser<{ version: number }[]>`SELECT max(version) AS version FROM environment_profiles`;
  return row?.version ?? 0;
}

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
