// The WebSocket of an open page: who may open it, what they hear, and when it ends.

import {
  createAllocation,
  createAllocationGrant,
  releaseAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { signOut } from "@holdfast/contracts/endpoints/sign-in";
import { cancelTask, createTask } from "@holdfast/contracts/endpoints/tasks";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { LIVE_PATH, LiveMessage } from "@holdfast/contracts/public/live";
import type { Scope } from "@holdfast/contracts/public/permissions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { newAllocation } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

let api: TestApi;
let home: TestOrg;
let foreign: TestOrg;
let member: Browser;
let node: TestNode;

beforeAll(async () => {
  api = await startTestApi();
  home = await createOrg(api, "home");
  foreign = await createOrg(api, "foreign");
  member = await addMember(api, home, "reader@example.com", "member");
  node = await enrollTestNode(api, home.id);
  await sendHeartbeatFrom(node);
});

type Opening = { cookie?: string; token?: string; origin?: string; orgId?: string; path?: string; host?: string };

function open(options: Opening = {}) {
  const { cookie = member.cookie, origin = api.url, orgId = home.id, path = LIVE_PATH, host } = options;
  const authorization = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  const headers = { cookie, ...authorization, ...(host ? { host } : {}) };
  const url = `${api.url.replace("http", "ws")}${path}?org_id=${orgId}`;
  const socket = new WebSocket(url, { headers, ...(origin ? { origin } : {}) });
  atEnd(() => socket.terminate());
  const heard: LiveMessage[] = [];
  socket.on("message", (data) => heard.push(LiveMessage.parse(JSON.parse(String(data)))));
  socket.on("error", () => undefined);
  const opened = new Promise<{ status: number; code?: string }>((resolve) => {
    socket.on("open", () => resolve({ status: 101 }));
    socket.on("unexpected-response", (_request, response) => {
      let body = "";
      response.on("data", (chunk) => (body += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, code: (JSON.parse(body) as { code: string }).code }),
      );
    });
  });
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  return { socket, heard, opened, closed };
}

describe("an open page", () => {
  it("DASH-04 hears of a task and of a node of its organization, by id only", async () => {
    const page = open();
    expect(await page.opened).toEqual({ status: 101 });
    const task = await api.operator(home.id)(createTask, {
      params: { node_id: node.id },
      body: { type: "node.noop" },
    });
    const offered = await node.client.ask({ path: `${node.path("tasks/wait")}?wait=5&room=1` });
    expect(offered.body["tasks"]).toHaveLength(1);
    const result = { generation: 1, timings: {}, outcome: { status: "succeeded", result: { echo: null } } };
    await node.client.ask({ method: "POST", path: node.path(`tasks/${task.id}/result`), body: result });
    await expect.poll(() => page.heard.filter((one) => one.topic === "task")).not.toEqual([]);
    expect(page.heard.find((one) => one.topic === "task")).toEqual({
      type: "changed",
      topic: "task",
      ids: [task.id],
      node_ids: [node.id],
    });
    await api.operator(home.id)(changeNode, { params: { node_id: node.id }, body: { change: "drain" } });
    await expect.poll(() => page.heard.find((one) => one.topic === "node")?.ids).toEqual([node.id]);
    await api.operator(home.id)(changeNode, { params: { node_id: node.id }, body: { change: "reactivate" } });
  });

  it("DASH-04 hears of a terminal as it comes up", async () => {
    const { superuser } = openRoles(api.database);
    const { allocationId } = await newAllocation(superuser, home, node.id, { userId: member.me.id ?? "" });
    await superuser`INSERT INTO gateways VALUES (${uuidv7()}, 'ws://127.0.0.1:3002/t', 'https://127.0.0.1:1', 0)`;
    const page = open();
    await page.opened;
    const minted = await member.client(home.id)(createTerminalToken, {
      params: { allocation_id: allocationId },
      body: {},
    });
    const expected = { type: "changed", topic: "terminal", ids: [minted.session_id], node_ids: [node.id] };
    await expect.poll(() => page.heard.find((one) => one.topic === "terminal")).toEqual(expected);
  });

  it("SEC-01 hears of another member's allocation, its tasks and terminals only by a grant, or as an administrator", async () => {
    const [other, admin] = [
      await addMember(api, home, "other@example.com", "member"),
      await addMember(api, home, "admin@example.com", "admin"),
    ];
    const body = { node_id: node.id, username: `u${uuidv7().slice(-8)}` };
    const { id, task_id } = await member.client(home.id)(createAllocation, { body });
    const { superuser } = openRoles(api.database);
    await superuser`UPDATE allocations SET status = 'active' WHERE id = ${id}`;
    await superuser`INSERT INTO gateways VALUES (${uuidv7()}, 'ws://127.0.0.1:3002/t', 'https://127.0.0.1:1', 0)`;
    const params = { allocation_id: id };
    const pages = [open(), open({ cookie: other.cookie }), open({ cookie: admin.cookie })] as const;
    const [own, others, administrators] = pages;
    await Promise.all(pages.map(({ opened }) => opened));
    const { session_id } = await member.client(home.id)(createTerminalToken, { params, body: {} });
    await member.client(home.id)(releaseAllocation, { params });
    await api.operator(home.id)(cancelTask, { params: { task_id: task_id ?? "" } });
    const heard = (page: typeof own) => new Set(page.heard.flatMap(({ ids }) => ids));
    for (const page of [own, administrators]) {
      await expect.poll(() => heard(page)).toEqual(heard(page).union(new Set([id, session_id, task_id])));
    }
    // Whoever hears of the node afterwards would have heard of the allocation before.
    await api.operator(home.id)(changeNode, { params: { node_id: node.id }, body: { change: "drain" } });
    await expect.poll(() => heard(others)).toContain(node.id);
    for (const hidden of [id, session_id, task_id]) expect(heard(others)).not.toContain(hidden);
    const user_id = other.me.id ?? "";
    await member.client(home.id)(createAllocationGrant, { params, body: { user_id } });
    await expect.poll(() => heard(others)).toContain(id);
    await api.operator(home.id)(changeNode, { params: { node_id: node.id }, body: { change: "reactivate" } });
  });

  it("SEC-01 hears nothing of another organization", async () => {
    const stranger = await addMember(api, foreign, "stranger@example.com", "member");
    const theirs = open({ cookie: stranger.cookie, orgId: foreign.id });
    const ours = open();
    await Promise.all([theirs.opened, ours.opened]);
    await api.operator(home.id)(changeNode, { params: { node_id: node.id }, body: { change: "drain" } });
    await expect.poll(() => ours.heard).not.toEqual([]);
    expect(theirs.heard).toEqual([]);
    await api.operator(home.id)(changeNode, { params: { node_id: node.id }, body: { change: "reactivate" } });
  });

  it.for([
    { refused: "without a session", options: { cookie: "a=b" }, answer: { status: 401, code: "unauthenticated" } },
    {
      refused: "from another site",
      options: { origin: "https://evil.example" },
      answer: { status: 403, code: "origin_refused" },
    },
    { refused: "without an origin", options: { origin: "" }, answer: { status: 403, code: "origin_refused" } },
    {
      refused: "by a foreign host name",
      options: { host: "evil.example" },
      answer: { status: 421, code: "host_refused" },
    },
    {
      refused: "in an organization one has no part in",
      options: { orgId: "01a1e13c-bc3d-71c5-9b58-aada3c2346d4" },
      answer: { status: 404, code: "not_found" },
    },
    { refused: "elsewhere", options: { path: "/v1/else" }, answer: { status: 404, code: "route_not_found" } },
  ])("SEC-03 is refused $refused", async ({ options, answer }) => {
    expect(await open(options).opened).toEqual(answer);
  });

  it("SEC-01 is refused to a token that may not read all that is told there", async () => {
    const tokenOf = async (scopes: Scope[]) => {
      const body = { name: `${scopes.length} scopes`, role: "member" as const, scopes };
      return (await api.operator(home.id)(createToken, { body })).token;
    };
    const all: Scope[] = [
      ...(["nodes:read", "tasks:read", "allocations:read", "agents:read", "executions:read"] as const),
      ...(["leases:read", "workflows:read"] as const),
    ];
    const narrow = await tokenOf(["org:read", ...all.slice(1)]);
    expect(await open({ token: narrow }).opened).toEqual({ status: 403, code: "forbidden" });
    const enough = await tokenOf(all);
    expect(await open({ token: enough }).opened).toEqual({ status: 101 });
  });

  it("DASH-04 is told to go when the server stops", async () => {
    const other = await startTestApi();
    const org = await createOrg(other, "short");
    const reader = await addMember(other, org, "short@example.com", "member");
    const socket = new WebSocket(`${other.url.replace("http", "ws")}${LIVE_PATH}?org_id=${org.id}`, {
      headers: { cookie: reader.cookie },
      origin: other.url,
    });
    await new Promise((resolve) => socket.once("open", resolve));
    const closed = new Promise<number>((resolve) => socket.once("close", resolve));
    await reader.client()(signOut, {});
    await other.stop();
    expect(await closed).toBe(1001);
  });
});
