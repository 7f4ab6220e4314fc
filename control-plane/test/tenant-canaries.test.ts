// Two tenants on one node, through faults and recovery: nothing of the one is in any response, live frame, notification or
// terminal frame of the other. What is planted is found by its operator, so a leak would be found, too.

import {
  createAllocation,
  listAllocationNotifications,
  repairAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createProject } from "@holdfast/contracts/endpoints/projects";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { LIVE_PATH, LiveMessage } from "@holdfast/contracts/public/live";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
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
import { quiet } from "../../testkit/api/replica.ts";
import { endTask, failedWith, opened, takeTask } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { SERVICE_TOKEN } from "../../testkit/gateway/api.ts";
import {
  comeUp,
  connectClient,
  connectNode,
  startTestGateway,
  type TestGateway,
} from "../../testkit/gateway/gateway.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { Sql } from "../src/database/connect.ts";
import { drift } from "../src/drift/module.ts";
import { openSignals, type Signals } from "../src/mechanisms/signals.ts";
import { everyGet, readable, type Seen } from "./support/every-get.ts";

let api: TestApi;
let gateway: TestGateway;
let superuser: Sql;
let system: Sql;
let signals: Signals;
let org: TestOrg;
let node: TestNode;
/** The tenant whose canaries are planted, the one who must not see them, their operator, and somebody elsewhere. */
let ada: Browser;
let bob: Browser;
let admin: Browser;
let stranger: Browser;
let elsewhere: TestOrg;

/** `members`: endpoints in which every member of the organization may see it. */
type Canary = { text: string; members?: string[] };
const canaries = new Map<string, Canary>();
const plant = (name: string, text: string, members?: string[]): string => {
  canaries.set(name, { text, ...(members ? { members } : {}) });
  return text;
};
/** Not to be found by chance. */
const mark = (name: string) => plant(name, `canary-${name}-${uuidv7().slice(-12)}`);

const ids = { ada: {} as Record<string, string>, bob: {} as Record<string, string> };

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  gateway = await startTestGateway({ url: api.internalUrl });
  ({ superuser, system } = openRoles(api.database));
  signals = await openSignals(system, quiet);
  atEnd(() => signals.stop());
  org = await createOrg(api, "kelp");
  elsewhere = await createOrg(api, "elsewhere");
  ada = await addMember(api, org, "ada@kelp.example", "member");
  bob = await addMember(api, org, "bob@kelp.example", "member");
  admin = await addMember(api, org, "admin@kelp.example", "admin");
  stranger = await addMember(api, elsewhere, "stranger@elsewhere.example", "owner");
  node = await enrollTestNode(api, org.id, { hostname: "shared-host" });
  await superuser`INSERT INTO vm_hosts (node_id, org_id) VALUES (${node.id}, ${org.id})`;
  await sendHeartbeatFrom(node);
  ids.ada = await settle(ada, true);
  ids.bob = await settle(bob, false);
  plantIds();
  await plantDelivery();
});

const nodeCertificate = () => ({ ...node.tls, id: node.id, serial: "" });

/** A project, an allocation with a failed repair, an API token and an open terminal. */
async function settle(person: Browser, planted: boolean): Promise<Record<string, string>> {
  const text = (name: string) => (planted ? mark(name) : `other-${name}-${uuidv7().slice(-8)}`);
  const tag = uuidv7().slice(-8);
  const project = await api.operator(org.id)(createProject, {
    body: { slug: `p-${tag}`, name: `Project ${tag}` },
  });
  const client = person.client(org.id);
  const { token: _, ...token } = await client(createToken, { body: { name: text("token"), role: "member" } });
  const username = `u${tag}`;
  const allocation = await client(createAllocation, {
    body: { node_id: node.id, username, project_id: project.id },
  });
  await endTask(node, await takeTask(node), {
    status: "succeeded",
    result: { home: `/home/${username}`, own_account: false },
  });
  await superuser`
    UPDATE allocations SET status = 'active', home = ${text("home")}, active_at = now() WHERE id = ${allocation.id}`;
  const params = { allocation_id: allocation.id };
  const repair = await client(repairAllocation, { params });
  await endTask(node, await takeTask(node), failedWith("user_changed", text("task-failure")));
  const minted = await client(createTerminalToken, { params, body: {} });
  const peer = await connectClient(gateway, minted.token, { origin: "" });
  peer.send({ type: "resize", cols: 90, rows: 20 });
  const task = await takeTask(node);
  const stream = await connectNode(gateway, minted.session_id, nodeCertificate());
  await comeUp(stream);
  await peer.next("ready");
  await endTask(node, task, opened);
  stream.send({ type: "exit", code: 0, signal: null });
  await peer.next("exit");
  return {
    ...{ org_id: org.id, node_id: node.id, project_id: project.id, project_slug: project.slug, username },
    ...{ allocation_id: allocation.id, task_id: repair.id, terminal_id: minted.session_id, token_id: token.id },
    ...{ correlation_id: minted.correlation_id, terminal_task_id: task.task_id, user_id: person.me.id ?? "" },
  };
}

function plantIds(): void {
  const { node_id: _, org_id: __, user_id, project_id, project_slug, ...own } = ids.ada;
  for (const [name, id] of Object.entries(own)) plant(name, id);
  // Members know who is in their organization and which projects it has.
  plant("user_id", user_id ?? "", ["listMembers"]);
  plant("email", "ada@kelp.example", ["listMembers"]);
  plant("project_id", project_id ?? "", ["listProjects", "getProject"]);
  plant("project_slug", project_slug ?? "", ["listProjects", "getProject"]);
}

/** A message to the organization's operators. */
async function plantDelivery(): Promise<void> {
  const receiver = uuidv7();
  await superuser`
    INSERT INTO notification_receivers (id, org_id, kind, address, creator_name)
    VALUES (${receiver}, ${org.id}, 'mail', ${mark("receiver")}, 'test')`;
  await superuser`
    INSERT INTO notification_deliveries (id, org_id, receiver_id, kind, event, subject, message, state)
    VALUES (${common.delivery_id}, ${org.id}, ${receiver}, 'mail', 'incident.opened', 'a subject',
      ${JSON.stringify({ event: "incident.opened", title: mark("message") })}::text::json, 'failed')`;
}

const job = (name: string) => {
  const found = drift.workerJobs.find((one) => one.name === name);
  if (!found) throw new Error(`there is no job ${name}`);
  const settings = { nodeHeartbeatStaleSeconds: 120, incidentRetentionDays: 90 };
  return () => found.run({ system, signals, settings, log: quiet } as never);
};
async function classify(): Promise<void> {
  await job("find-silent-nodes")();
  // A node of which something is being written has its turn later.
  do await job("classify-nodes")();
  while ((await superuser`SELECT FROM node_verdicts WHERE review_at <= now() LIMIT 1`).length > 0);
}

/** What an open page of somebody received, as text. */
async function openPage(person: Browser, orgId: string) {
  const url = `${api.url.replace("http", "ws")}${LIVE_PATH}?org_id=${orgId}`;
  const socket = new WebSocket(url, { headers: { cookie: person.cookie }, origin: api.url });
  atEnd(() => socket.terminate());
  const frames: string[] = [];
  socket.on("message", (data) => frames.push(String(data)));
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const of = (topic: string) =>
    frames.map((frame) => LiveMessage.parse(JSON.parse(frame))).filter((one) => one.topic === topic);
  return { frames, ids: (topic: string) => of(topic).flatMap((one) => one.ids) };
}

const filters = () => ({
  ...{ node_id: node.id, attention: text("finding_code"), search: text("username"), owner: text("user_id") },
  ...{
    allocation_id: text("allocation_id"),
    project_id: text("project_id"),
    correlation_id: text("correlation_id"),
  },
});
const text = (name: string) => canaries.get(name)?.text ?? `not planted: ${name}`;
/** Nothing of tenants on a node: unknown ones do. */
const common = {
  ...{ session_id: uuidv7(), invitation_id: uuidv7(), delivery_id: uuidv7() },
  ...{ execution_id: uuidv7(), agent_id: uuidv7(), lease_id: uuidv7(), secret_id: uuidv7() },
  ...{ controller_id: uuidv7(), evidence_id: uuidv7(), preflight_id: uuidv7() },
  ...{ workflow_id: uuidv7(), run_id: uuidv7(), version: "1" },
};

/** With one's own ids, and with those of the other tenant. */
async function allSeenBy(person: Browser, orgId = org.id): Promise<Seen[]> {
  const incident = { incident_id: text("incident_id"), trace_id: text("incident_id") };
  const [own, others] = person === ada ? [ids.ada, ids.bob] : [ids.bob, ids.ada];
  const wanted = { orgId, filters: filters() };
  // The node is a VM host, too.
  const shared = { ...common, ...incident, host_id: node.id };
  return [
    ...(await everyGet(api, person, { ...wanted, ids: { ...shared, ...own } })),
    ...(await everyGet(api, person, { ...wanted, ids: { ...shared, ...others } })),
  ];
}

const leaksIn = (seen: readonly Pick<Seen, "where" | "endpoint" | "bytes">[], allowed = true) =>
  seen.flatMap(({ where, endpoint, bytes }) =>
    [...canaries].flatMap(([name, canary]) =>
      bytes.includes(canary.text) && !(allowed && canary.members?.includes(endpoint))
        ? [`${name} in ${where}`]
        : [],
    ),
  );

/** What somebody tries while the node is in trouble, with the errors that come of it. */
async function tryEverything(person: Browser, allocationId: string): Promise<Seen[]> {
  const client = person.client(org.id);
  const params = { allocation_id: allocationId };
  const attempts: Record<string, () => Promise<unknown>> = {
    repairAllocation: () => client(repairAllocation, { params }),
    createAllocation: () =>
      client(createAllocation, { body: { node_id: node.id, username: `u${uuidv7().slice(-8)}` } }),
    createTerminalToken: async () => {
      const minted = await client(createTerminalToken, { params, body: {} });
      const peer = await connectClient(gateway, minted.token, { origin: "" });
      peer.send({ type: "resize", cols: 90, rows: 20 });
      return peer.next("error");
    },
  };
  const seen: Seen[] = [];
  for (const [endpoint, attempt] of Object.entries(attempts)) {
    const outcome = await attempt().catch((error: { envelope?: unknown }) => error.envelope ?? error);
    seen.push({ where: endpoint, endpoint, status: 0, bytes: JSON.stringify(outcome) });
  }
  return seen;
}

const change = (what: "fence" | "reactivate", reason?: string) =>
  api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: what, reason } });

describe("two tenants on one node", () => {
  it("DRIFT-10 DASH-07 see nothing of each other, whatever happens to it", async () => {
    const pages = { bob: await openPage(bob, org.id), admin: await openPage(admin, org.id) };
    const ofStranger = await openPage(stranger, elsewhere.id);
    const seen = { bob: [] as Seen[], tried: [] as Seen[], others: [] as Seen[], stranger: [] as Seen[] };
    const look = async () => {
      seen.bob.push(...(await allSeenBy(bob)));
      seen.others.push(...(await allSeenBy(admin)), ...(await allSeenBy(ada)));
      seen.stranger.push(...(await allSeenBy(stranger, elsewhere.id)), ...(await allSeenBy(stranger)));
    };

    // It reports a fault, in words that name somebody.
    const findings = [
      { reason: plant("finding_code", `canary_${uuidv7().slice(-12)}`), detail: "" },
      { reason: "disk_full", detail: mark("finding"), correlation_id: mark("finding-correlation") },
    ];
    await sendHeartbeatFrom(node, { findings });
    const record = { seq: 1, at: new Date().toISOString(), reason: "disk_full", detail: mark("diagnostic") };
    const identity = { instance_id: uuidv7(), correlation_id: mark("diagnostic-correlation") };
    await node.client.ask({
      method: "POST",
      path: node.path("diagnostics"),
      body: { records: [{ ...record, ...identity }] },
    });
    const handedIn = {
      at: new Date().toISOString(),
      reason: "clock_skew",
      detail: mark("evidence"),
      correlation_id: null,
    };
    await admin.client(org.id)(addNodeEvidence, { params: { node_id: node.id }, body: { records: [handedIn] } });
    await expect.poll(() => superuser`SELECT id FROM node_observations WHERE kind = 'finding'`).toHaveLength(2);
    await classify();
    const [incident] = await superuser<{ id: string }[]>`SELECT id FROM incidents`;
    plant("incident_id", incident?.id ?? "");
    const observed = await superuser<
      { id: string; kind: string }[]
    >`SELECT id, kind FROM node_observations WHERE replaced_at IS NULL`;
    for (const { id, kind } of observed) plant(`observation-${kind}-${id.slice(-4)}`, id);
    await superuser`
      UPDATE allocation_notifications SET message = ${mark("notification")}
      WHERE allocation_id = ${text("allocation_id")}`;
    const [notified] = await superuser<{ id: string }[]>`
      SELECT id FROM allocation_notifications WHERE allocation_id = ${text("allocation_id")}`;
    plant("notification_id", notified?.id ?? "");
    await look();

    // It falls silent.
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes'`;
    await classify();
    await look();
    seen.tried.push(...(await tryEverything(bob, ids.bob["allocation_id"] ?? "")));

    // An operator quarantines it, and says why.
    await change("fence", mark("quarantine"));
    await classify();
    await look();
    seen.tried.push(...(await tryEverything(bob, ids.bob["allocation_id"] ?? "")));

    // It is back.
    await change("reactivate");
    await sendHeartbeatFrom(node);
    await expect
      .poll(() => superuser`SELECT id FROM node_observations WHERE value = 'present' AND replaced_at IS NULL`)
      .toEqual([]);
    await classify();
    await look();
    for (const page of Object.values(pages)) {
      await expect
        .poll(() => page.ids("allocation").filter((id) => id === ids.bob["allocation_id"]).length)
        .toBeGreaterThan(2);
    }

    // Each canary is in front of somebody, so that its absence elsewhere says something.
    const found = new Set(leaksIn(seen.others, false).map((leak) => leak.split(" in ")[0]));
    expect([...canaries.keys()].filter((name) => !found.has(name))).toEqual([]);
    expect(readable.length).toBeGreaterThan(30);

    expect(leaksIn(seen.bob)).toEqual([]);
    expect(leaksIn(seen.tried)).toEqual([]);
    expect(leaksIn([{ where: "live frames", endpoint: "live", bytes: pages.bob.frames.join("\n") }])).toEqual([]);
    expect(leaksIn(seen.stranger, false)).toEqual([]);
    expect(
      leaksIn([{ where: "live frames", endpoint: "live", bytes: ofStranger.frames.join("\n") }], false),
    ).toEqual([]);

    // What he reads instead: his own state, in plain words.
    expect(pages.admin.ids("allocation")).toContain(text("allocation_id"));
    expect([pages.bob.ids("verdict"), pages.admin.ids("verdict").length > 0]).toEqual([[], true]);
    const params = { allocation_id: ids.bob["allocation_id"] ?? "" };
    const { items } = await bob.client(org.id)(listAllocationNotifications, { params });
    expect(items.map(({ state, message }) => [state, message]).toReversed()).toEqual(
      (["temporary", "operator_action_required", "recovering"] as const).map((state) => [
        state,
        userStateTitles[state].meaning,
      ]),
    );
  });

  it("DASH-07 no reason of the node is in what a tenant reads of nodes, the fleet and allocations", async () => {
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes'`;
    await classify();
    const codes = ["agent_down", "heartbeat_stale", "connection_lost", "node_agent_heartbeat_stale"];
    const nouns = new Set(["nodes", "fleet", "allocations", "incidents"]);
    const names = new Set(readable.filter(({ noun }) => nouns.has(noun)).map(({ name }) => name));
    const naming = (seen: Seen[]) =>
      seen
        .filter(({ endpoint, bytes }) => names.has(endpoint) && codes.some((code) => bytes.includes(code)))
        .map(({ where }) => where);
    expect(naming(await allSeenBy(bob))).toEqual([]);
    expect(naming(await allSeenBy(admin)).length, "operators keep them").toBeGreaterThan(3);
    const params = { node_id: node.id };
    const hidden = {
      status_reason: null,
      running_tasks: null,
      attention: [],
      certificate: null,
      unsent_results: null,
      ...{ agent_status: null, layers: null, user_state: null, cause_pending: false },
      ...{ setup: null, address: null, provider: null, network_side: null },
    };
    expect(await bob.client(org.id)(getNode, { params })).toMatchObject({ ...hidden, name: node.name });
    expect(await admin.client(org.id)(getNode, { params })).toMatchObject({ running_tasks: 0, unsent_results: 0 });
    const forbidden = (await allSeenBy(bob))
      .filter(({ status }) => status === 403)
      .map(({ endpoint }) => endpoint);
    const expected = [
      ...["explainNode", "getDelivery", "getFleet", "getFleetForecast", "getFleetPicture", "getIncident"],
      ...["getKekStatus", "getPlatformStatus"],
      ...["listAudit", "listDeliveries", "listEnrollmentTokens", "listIncidents", "listMemberTokens"],
      ...["listNodeDiagnostics", "listNodes", "listPlatformAudit", "listPlatformDeliveries"],
      ...["getTrace", "listBundles", "listEvidence", "listNodesWithoutToken", "getPreflight", "listPreflights"],
      ...["listPlatformIncidents", "listPolicy", "listReceivers", "listTaskSigningKeys"],
    ];
    expect([...new Set(forbidden)].toSorted()).toEqual(expected.toSorted());
  });
});
