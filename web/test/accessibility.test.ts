// Every page of the app, with its menus and dialogs open, light on a desk and dark on a telephone: axe-core finds
// nothing. The terminal's page, which needs a gateway, is in terminal.test.ts.

import { readFileSync } from "node:fs";
import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { listExecutions } from "@holdfast/contracts/endpoints/executions";
import { addJenkinsController } from "@holdfast/contracts/endpoints/jenkins";
import { setLeaseLabel } from "@holdfast/contracts/endpoints/leases";
import { inviteMember } from "@holdfast/contracts/endpoints/members";
import { createReceiver, testReceiver } from "@holdfast/contracts/endpoints/notify";
import { createProject } from "@holdfast/contracts/endpoints/projects";
import { startRun } from "@holdfast/contracts/endpoints/runs";
import { setSecret } from "@holdfast/contracts/endpoints/secrets";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { connectTestAgent } from "../../testkit/api/agents.ts";
import { addMember, createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { seedFleet } from "../../testkit/api/fleet.ts";
import { IMAGE } from "../../testkit/api/leases.ts";
import { enrollTestNode, heartbeatOf, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { enrollGateway, SERVICE_TOKEN } from "../../testkit/api/services.ts";
import { leaseOn } from "../../testkit/api/vm-hosts.ts";
import { violationsOf } from "../../testkit/browser/axe.ts";
import { openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { openRoles } from "../../testkit/database/database.ts";

const { visit } = openChromium();
let api: TestApi;
let page: Page;
const ids = {
  node: "",
  task: "",
  allocation: "",
  execution: "",
  lease: "",
  controller: "",
  workflow: "",
  run: "",
};

const source = `version: "1"
nodes:
  ask: { type: http.request, url: "https://reef.example/" } # the list
  check: { type: condition, after: [ask], if: nodes.ask.output.body.ok }
  repair: { type: agent.execute, after: [check.false, ask.failed], script: ./repair }
`;

const button = (name: string | RegExp) => page.getByRole("button", { name }).first().click();
const item = (name: string) => page.getByRole("menuitem", { name }).click();

/** Addresses, and what is opened there. */
const places: Record<string, { path: () => string; open?: () => Promise<void> }> = {
  overview: { path: () => "/" },
  "the account menu": { path: () => "/", open: () => button(/^Account/) },
  "the organization switcher": { path: () => "/", open: () => button(/Switch organization/) },
  nodes: { path: () => "/nodes" },
  "nodes filtered": { path: () => "/nodes?block=10.0.0.0%2F24&group=block" },
  "no node": { path: () => "/nodes?search=no-such" },
  "adding a node": { path: () => "/nodes?add=yes" },
  "the join command": { path: () => "/nodes?add=yes", open: () => button("Get the command") },
  "a node": { path: () => `/nodes/${ids.node}` },
  "a node's actions": { path: () => `/nodes/${ids.node}`, open: () => button(/^Actions/) },
  "draining a node": {
    path: () => `/nodes/${ids.node}`,
    open: async () => {
      await button(/^Actions/);
      await item("Drain node");
    },
  },
  "running a task": { path: () => `/nodes/${ids.node}`, open: () => button("Run a task") },
  "a task": { path: () => `/tasks/${ids.task}` },
  "a trace": { path: () => `/trace/${ids.task}` },
  allocations: { path: () => "/allocations" },
  "a new allocation": {
    path: () => "/allocations?add=yes",
    open: async () => {
      await page.getByRole("dialog").getByRole("combobox", { name: "Node" }).click();
      await page.getByRole("option").first().waitFor();
    },
  },
  "an allocation": { path: () => `/allocations/${ids.allocation}` },
  "sharing an allocation": { path: () => `/allocations/${ids.allocation}`, open: () => button("Share") },
  "repairing an allocation": { path: () => `/allocations/${ids.allocation}`, open: () => button("Repair") },
  "releasing an allocation": { path: () => `/allocations/${ids.allocation}`, open: () => button(/^Release/) },
  "my terminals": { path: () => "/terminals" },
  workflows: { path: () => "/workflows" },
  "a new workflow": { path: () => "/workflows", open: () => button("New workflow") },
  "a workflow": {
    path: () => `/workflows/${ids.workflow}`,
    open: () => page.locator(".react-flow__node").first().click(),
  },
  "adding a step": { path: () => `/workflows/${ids.workflow}`, open: () => button("Add step") },
  "running a workflow": {
    path: () => `/workflows/${ids.workflow}`,
    open: () => page.getByRole("main").getByRole("button", { name: "Run", exact: true }).click(),
  },
  "versions of a workflow": { path: () => `/workflows/${ids.workflow}?version=1` },
  runs: { path: () => "/runs" },
  "a run in the list": { path: () => "/runs", open: () => button(/: details$/) },
  "a run": { path: () => `/runs/${ids.run}` },
  secrets: { path: () => "/secrets" },
  "a new secret": { path: () => "/secrets", open: () => button("New secret") },
  "a secret's actions": { path: () => "/secrets", open: () => button(/^Actions for secret/) },
  agents: { path: () => "/agents" },
  "pairing an agent": { path: () => "/agents", open: () => button("Pair an agent") },
  "the connect command": {
    path: () => "/agents",
    open: async () => {
      await button("Pair an agent");
      await button("Create command");
    },
  },
  "an agent's actions": { path: () => "/agents", open: () => button(/^Actions for agent/) },
  executions: { path: () => "/executions" },
  "an execution in the list": { path: () => "/executions", open: () => button(/: details$/) },
  "an execution": { path: () => `/executions/${ids.execution}` },
  hosts: { path: () => "/hosts" },
  "hosts by their old address": { path: () => "/ui" },
  leases: { path: () => "/leases" },
  "a lease in the list": { path: () => "/leases", open: () => button(/: details$/) },
  "a lease": { path: () => `/leases/${ids.lease}` },
  jenkins: { path: () => "/jenkins" },
  "a Jenkins controller": { path: () => `/jenkins/${ids.controller}` },
  audit: { path: () => "/audit" },
  "an audit event": { path: () => "/audit", open: () => button(/^Details/) },
  projects: { path: () => "/organization/projects" },
  "a new project": { path: () => "/organization/projects", open: () => button("New project") },
  members: { path: () => "/organization/members" },
  "a member's actions": { path: () => "/organization/members", open: () => button(/^Actions for/) },
  "inviting a member": { path: () => "/organization/members", open: () => button("Invite member") },
  tokens: { path: () => "/organization/tokens" },
  "a new token": { path: () => "/organization/tokens", open: () => button("New token") },
  notifications: { path: () => "/organization/notifications" },
  "a new receiver": { path: () => "/organization/notifications", open: () => button("New receiver") },
  "a receiver's actions": {
    path: () => "/organization/notifications",
    open: () => button(/^Actions for receiver/),
  },
  "the organization's settings": { path: () => "/organization/settings" },
  account: { path: () => "/account" },
  // All of it is the same again some eighty times.
  reference: { path: () => "/reference", open: () => page.getByLabel("Filter operations").fill("quota") },
  "a page that does not exist": { path: () => "/no-such-page" },
  "a link that is used": { path: () => "/link" },
};

/** In terminal.test.ts and background-jobs.test.ts, and in the first test below. */
const elsewhere = [
  "/allocations/$allocationId/terminal",
  "/leases/$leaseId/console",
  "/platform/background-jobs",
  "/sign-in",
];

it("OPS-01 is looked for on every page that the app has", () => {
  const source = readFileSync(new URL("../src/router.tsx", import.meta.url), "utf8");
  const routes = [...source.matchAll(/path: "([^"]+)"/g)].map(([, path = ""]) => path);
  expect(routes.length).toBeGreaterThan(10);
  const visited = Object.values(places).map(({ path }) => path().split("?")[0]);
  const isVisited = (route: string) => {
    const form = new RegExp(`^(/organization)?${route.replace(/\$\w+/g, "[^/]*")}$`);
    return visited.some((path) => form.test(path ?? ""));
  };
  expect(routes.filter((route) => !isVisited(route) && !elsewhere.includes(route))).toEqual(["/organization"]);
});

describe.skipIf(lacks("chromium"))("what axe-core finds", () => {
  beforeAll(async () => {
    api = await startTestApi({
      env: {
        HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1",
        HOLDFAST_JENKINS_ALLOW_PRIVATE: "127.0.0.1",
        HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
        HOLDFAST_EXECUTION_WS_URL: "ws://127.0.0.1:3002/ws",
      },
    });
    const org = await createOrg(api, "reef");
    await addMember(api, org, "ada@reef.example", "owner");
    await addMember(api, org, "bob@reef.example", "member");
    const own = api.operator(org.id);
    const node = await enrollTestNode(api, org.id, { hostname: "rock-1" });
    const findings = [{ reason: "disk_full" as const, detail: "2 % free" }];
    await sendHeartbeatFrom(node, heartbeatOf({ findings }));
    await seedFleet(openRoles(api.database).superuser, org.id, 12, (number) =>
      number > 8 ? { silentSeconds: 600 } : {},
    );
    await own(createProject, { body: { slug: "second", name: "Second" } });
    await own(inviteMember, { body: { email: "next@reef.example" } });
    await own(createToken, { body: { name: "script", role: "member" } });
    await own(createEnrollmentToken, { body: {} });
    await own(setSecret, { body: { name: "deploy-key", value: "a value of it" } });
    const receiver = await own(createReceiver, { body: { url: "http://127.0.0.1:1/hook" } });
    await own(testReceiver, { params: { receiver_id: receiver.id } });
    const asked = { params: { node_id: node.id }, body: { type: "node.noop", params: { echo: "hello" } } };
    const agent = await connectTestAgent(api, await enrollGateway(api), { orgId: org.id, tags: ["east"] });
    await agent.request({ selectorTag: "west", waitMs: 600_000 });
    ids.execution = (await own(listExecutions, {})).items[0]?.id ?? "";
    ids.node = node.id;
    ids.lease = await leaseOn(api, { orgId: org.id, node });
    await own(setLeaseLabel, { body: { label: "tiny", image_id: IMAGE.id, profile: "tiny" } });
    const controller = { name: "ci", url: "http://127.0.0.1:1/", user: "holdfast", api_token: "a-token-of-it" };
    const labels = [{ jenkins_labels: ["linux"], lease_label: "tiny" }];
    ids.controller = (await own(addJenkinsController, { body: { ...controller, labels } })).id;
    const workflow = await own(applyWorkflow, { body: { name: "nightly", source } });
    ids.workflow = workflow.id;
    await own(publishWorkflow, { params: { workflow_id: workflow.id }, body: {} });
    await own(applyWorkflow, {
      body: { name: "nightly", source: `${source}# Not published.\noutput: \${{ oops }}\n` },
    });
    ids.run = (await own(startRun, { params: { workflow_id: workflow.id }, body: { input: {} } })).id;
    ids.task = (await own(createTask, asked)).id;
    ids.allocation = (await own(createAllocation, { body: { node_id: node.id, username: "alice" } })).id;
    await openRoles(api.database)
      .superuser`UPDATE allocations SET status = 'active', home = '/home/alice', active_at = now()`;
    ({ page } = await visit());
    await signIn(page, `${api.url}/`, "ada@reef.example");
    await page.locator("#main h1").waitFor();
  });

  it("OPS-01 is nothing before one has signed in", async () => {
    const stranger = (await visit()).page;
    await stranger.goto(`${api.url}/`);
    await stranger.getByLabel("Email").fill("ada@reef.example");
    const found = await violationsOf(stranger, "sign-in");
    await stranger.getByLabel("Password", { exact: true }).fill("wrong");
    await stranger.getByRole("button", { name: "Sign in" }).click();
    await stranger.getByRole("alert").waitFor();
    expect([...found, ...(await violationsOf(stranger, "sign-in refused"))]).toEqual([]);
  });

  it.for(Object.entries(places))("OPS-01 is nothing: %s", async ([name, { path, open }]) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(api.url + path());
    await page.locator("h1").first().waitFor();
    await expect.poll(() => page.getByText(/^Loading/).count()).toBe(0);
    await open?.();
    expect(await violationsOf(page, name)).toEqual([]);
  });

  it("OPS-01 is nothing: a button whose request is not answered yet", async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${api.url}/nodes?add=yes`);
    await page.route("**/v1/enrollment-tokens", () => undefined);
    await button("Get the command");
    await page.locator("button[aria-busy=true]").waitFor();
    expect(await violationsOf(page, "a busy button")).toEqual([]);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  it("OPS-01 is nothing: navigation on a telephone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${api.url}/`);
    await page.getByRole("button", { name: "Open navigation" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await violationsOf(page, "navigation")).toEqual([]);
  });
});
