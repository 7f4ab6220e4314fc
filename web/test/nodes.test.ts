// Nodes, tasks and allocations in a browser, as people use them: a real api, a real agent, live pages.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import { createEnrollmentToken, listEnrollmentTokens } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode } from "../../testkit/api/nodes.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { joinAndRun } from "./agent.ts";

const { visit } = openChromium();
let api: TestApi;
let org: TestOrg;
let page: Page;
let complaints: string[];
let nodeId: string;
const own = () => api.operator(org.id);

async function open(at: Page, email: string, path: string): Promise<void> {
  await signIn(at, `${api.url}${path}`, email);
  await at.locator("#main h1").waitFor();
}

const task = (name: RegExp) =>
  page.getByRole("list", { name: "Tasks" }).getByRole("listitem").filter({ hasText: name });

describe.skipIf(lacks("chromium"))("an administrator", () => {
  beforeAll(async () => {
    api = await startTestApi();
    org = await createOrg(api, "reef");
    await addMember(api, org, "admin@reef.example", "admin");
    await addMember(api, org, "member@reef.example", "member");
    ({ page, complaints } = await visit());
    await open(page, "admin@reef.example", "/nodes");
  });

  it("ID-01 adds a node: gets the command, and sees the machine join while waiting", async () => {
    await page.getByText("No nodes yet").waitFor();
    await keepScreenshot(page, "nodes-none");
    await page.getByRole("button", { name: "Add a node" }).click();
    await page.getByLabel("Name").fill("rock-1");
    await page.getByRole("button", { name: "Get the command" }).click();
    const command = await page.getByRole("textbox", { name: "Join command" }).inputValue();
    expect(command).toMatch(/sha256sum -c/);
    const token = /hfe_[\w-]{43}\.[\w-]{43}/.exec(command)?.[0] ?? "";
    const apiUrl = /--api (https:\/\/[^\s'"]+)/.exec(command)?.[1] ?? "";
    await page.getByText("Waiting for the machine to enroll").waitFor();
    await page.getByText("HOLDFAST_NODE_API_BIND").waitFor();
    await keepScreenshot(page, "node-join-command");
    ({ nodeId } = await joinAndRun({ token, apiUrl }));
    await page.getByText("rock-1 is enrolled").waitFor();
    await keepScreenshot(page, "node-joined");
    await page.getByRole("link", { name: "Open rock-1" }).click();
    await page.getByRole("heading", { level: 1, name: "rock-1" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/nodes/${nodeId}`);
  });

  it("ID-01 lists a token that waits for a machine, and revokes it", async () => {
    const { id } = await own()(createEnrollmentToken, { body: {} });
    await page.goto(`${api.url}/nodes`);
    const waiting = page.getByRole("table", { name: "Open enrollment tokens" });
    await waiting.getByText("A new node").waitFor();
    await keepScreenshot(page, "nodes");
    await waiting.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke token" }).click();
    await waiting.waitFor({ state: "detached" });
    const { items } = await own()(listEnrollmentTokens, {});
    expect(items.find((token) => token.id === id)?.revoked_at).not.toBeNull();
  });

  it("ID-01 lists a bootstrap token as long as it works", async () => {
    const made = await own()(createEnrollmentToken, { body: { kind: "bootstrap", node_name: "rock-2" } });
    await page.goto(`${api.url}/nodes`);
    const open = page.getByRole("table", { name: "Open enrollment tokens" });
    await open.getByText("rock-2, reusable").waitFor();
    const joined = await enrollTestNode(api, org.id, { token: made.token });
    await page.reload();
    await open.getByText("rock-2, reusable").waitFor();
    await own()(changeNode, { params: { node_id: joined.id }, body: { change: "retire" } });
    await open.waitFor({ state: "detached" });
    const { items } = await own()(listEnrollmentTokens, {});
    expect(items[0]).toMatchObject({ id: made.id, uses: 1, revoked_at: expect.any(String) });
  });

  it("DASH-01 lists the node online, finds it by a part of its name, and keeps what it looks for in the address", async () => {
    const row = page.getByRole("row", { name: /rock-1/ });
    await row.getByText("Online").waitFor();
    await row.getByText(/last heartbeat \d+ s ago/).waitFor();
    await page.getByLabel("Search").fill("no-such");
    await page.getByText("No node matches").waitFor();
    await page.getByLabel("Search").fill("OCK");
    await row.waitFor();
    await expect.poll(() => page.url()).toContain("search=OCK");
    await page.getByLabel("State", { exact: true }).selectOption("draining");
    await page.getByText("No node matches").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await row.waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  it("ID-02 shows what is known of a node: machine, heartbeat and certificate", async () => {
    await page.goto(`${api.url}/nodes/${nodeId}`);
    const region = (name: string) => page.getByRole("region", { name });
    await region("Identity").getByText("Valid", { exact: true }).waitFor();
    await region("Identity").getByText("Renewal due").waitFor();
    await region("Heartbeat").getByText("In sync (less than 1 s off)").waitFor();
    await region("Machine").getByText(userInfo().username, { exact: true }).waitFor();
    await region("Diagnostics").getByText("process_alive").first().waitFor();
    await region("Health").getByText("Not probed yet").waitFor();
    expect(await region("Machine").textContent()).toMatch(/GiB/);
  });

  it("TASK-01 runs a health probe and shows its typed result", async () => {
    await page.getByRole("button", { name: "Run a task" }).click();
    await page.getByLabel("Type").selectOption("diag.health_probe");
    await page.getByText("This type has no parameters.").waitFor();
    await page.getByRole("button", { name: "Run task" }).click();
    const probe = task(/diag\.health_probe/);
    await probe.getByText("Completed").waitFor();
    await probe.getByText("uptime", { exact: true }).waitFor();
    const health = page.getByRole("region", { name: "Health" });
    await health.getByText(/^probed/).waitFor();
    await health.getByText("IOMMU groups").waitFor();
    await probe.getByText("Correlation id").waitFor();
    await keepScreenshot(page, "node");
    await probe.getByRole("link", { name: "Open task" }).click();
    await page.getByRole("heading", { level: 1, name: "diag.health_probe" }).waitFor();
    await page.getByRole("region", { name: "Time per phase" }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/tasks\/[0-9a-f-]{36}$/);
    await keepScreenshot(page, "task");
    await page.getByRole("link", { name: "rock-1" }).click();
    await page.getByRole("heading", { level: 1, name: "rock-1" }).waitFor();
  });

  it("DASH-04 follows a task as it runs, without asking, and cancels it on the node", async () => {
    await page.getByRole("button", { name: "Run a task" }).click();
    await page.getByLabel("Type").selectOption("node.noop");
    await page.getByLabel("Hold ms").fill("60000");
    await page.getByRole("button", { name: "Run task" }).click();
    const noop = task(/node\.noop/);
    await noop.getByText("Running").waitFor();
    const bar = noop.getByRole("progressbar");
    await expect.poll(async () => Number(await bar.getAttribute("aria-valuenow"))).toBeGreaterThan(0);
    await keepScreenshot(page, "task-running");
    await noop.getByRole("button", { name: "Cancel node.noop" }).click();
    await noop.getByText("Cancelled", { exact: true }).waitFor();
    await noop.getByText("The task was cancelled.").waitFor();
    expect(await page.getByText("Not live").count()).toBe(0);
  });

  it("TASK-07 shows at the field what the server did not accept", async () => {
    await page.getByRole("button", { name: "Run a task" }).click();
    await page.getByLabel("Type").selectOption("node.noop");
    await page.getByRole("button", { name: "Edit as JSON" }).click();
    await page.getByLabel("Parameters").fill('{ "hold_ms": 1,');
    await page.getByText(/This is not JSON/).waitFor();
    await page.getByLabel("Parameters").fill('{ "hold_ms": "soon" }');
    await page.getByRole("button", { name: "Run task" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText(/hold ms/).waitFor();
    expect(await alert.textContent()).toMatch(/Correlation id/);
    await keepScreenshot(page, "task-refused");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
  });

  it("DASH-04 tells everything of one task under its own address, as it happens", async () => {
    const { id } = await own()(createTask, {
      params: { node_id: nodeId },
      body: { type: "node.noop", params: { echo: "hello", hold_ms: 60_000 } },
    });
    await page.goto(`${api.url}/tasks/${id}`);
    await page.getByRole("progressbar").waitFor();
    await page.getByText("hello").waitFor();
    await keepScreenshot(page, "task-live");
    await page.getByRole("button", { name: "Cancel node.noop" }).click();
    await page.getByRole("status").getByText("Cancelled", { exact: true }).waitFor();
    expect((await own()(getTask, { params: { task_id: id } })).status).toBe("cancelled");
    await page.goto(`${api.url}/tasks/${nodeId}`);
    await page.getByText("Task not found").waitFor();
  });

  it("ID-09 drains and reactivates a node, with a reason that stays to be read", async () => {
    await page.goto(`${api.url}/nodes/${nodeId}`);
    const choose = async (action: string) => {
      await page.getByRole("button", { name: "Actions for node rock-1" }).click();
      await page.getByRole("menuitem", { name: action }).click();
    };
    await choose("Drain node");
    await page.getByText("It gets no new tasks").waitFor();
    await page.getByLabel("Reason").fill("Replacing its disk");
    await keepScreenshot(page, "node-drain");
    await page.getByRole("button", { name: "Drain node" }).click();
    // The node's own record of it may be on the page, too.
    await page.getByText("Replacing its disk").first().waitFor();
    await page.getByText("no new tasks while draining").waitFor();
    await keepScreenshot(page, "node-draining");
    expect(await own()(getNode, { params: { node_id: nodeId } })).toMatchObject({ status: "draining" });
    await choose("Reactivate node");
    await page.getByRole("button", { name: "Reactivate node" }).click();
    await page.getByRole("button", { name: "Run a task" }).waitFor();
  });

  it("ID-09 hears of what others do to a node, and says what to do", async () => {
    await own()(changeNode, { params: { node_id: nodeId }, body: { change: "fence", reason: "looks odd" } });
    const causes = page.getByRole("region", { name: "Causes" });
    await causes.getByText(/looks odd/).waitFor();
    await causes.getByText("holdfast node reactivate rock-1").first().waitFor();
    await causes.getByText(/P0 · Node enrollment and identity · high confidence/).waitFor();
    const layers = page.getByRole("list", { name: "Layers" });
    await expect.poll(() => layers.textContent()).toMatch(/^ManagementimpairedWorkload\w+Access\w+$/);
    const recovery = page.getByRole("list", { name: "Recovery checklist" });
    await recovery.getByText("Heartbeat current").waitFor();
    expect(await recovery.getByRole("listitem").count()).toBe(5);
    await keepScreenshot(page, "node-fenced");
    await page.getByRole("button", { name: /Show \d+ observations/ }).click();
    // The agent's own record of it may be there, too.
    await page.getByRole("list", { name: "Observations" }).getByText("quarantined").first().waitFor();
    await keepScreenshot(page, "node-evidence");
    await page.goto(`${api.url}/`);
    await page
      .getByRole("list", { name: "Nodes that need attention" })
      .getByRole("link", { name: "rock-1" })
      .waitFor();
    await keepScreenshot(page, "overview-with-nodes");
    await own()(changeNode, { params: { node_id: nodeId }, body: { change: "reactivate" } });
    await page.getByText("No problems.").waitFor();
    expect(complaints).toEqual([]);
  });

  const asRoot = process.getuid?.() === 0;
  const username = asRoot ? `hfweb-${randomBytes(4).toString("hex")}` : userInfo().username;

  it("BM-01 allocates a user on the node, sees it become active, and releases it", async () => {
    if (asRoot) atEnd(() => removeUser(username));
    await page.goto(`${api.url}/allocations`);
    await page.getByText("No allocations yet").waitFor();
    await keepScreenshot(page, "allocations-none");
    await page.getByRole("button", { name: "New allocation" }).first().click();
    const user = page.getByLabel("User", { exact: true });
    if (asRoot) {
      await user.fill(username);
      await page.getByLabel("SSH keys").fill("-----BEGIN OPENSSH PRIVATE KEY-----");
      await page.getByText(/keep this one secret/).waitFor();
      await keepScreenshot(page, "allocation-new");
      await page.getByLabel("SSH keys").fill("");
    } else expect(await user.inputValue()).toBe(username);
    await page.getByRole("button", { name: "Create allocation", exact: true }).click();
    const row = page.getByRole("row", { name: new RegExp(username) });
    await row.getByText("Ready").waitFor();
    await keepScreenshot(page, "allocations");
    await row.getByRole("button", { name: `Release ${username}` }).click();
    await page
      .getByRole("alertdialog")
      .getByText(/removed|kept/)
      .waitFor();
    await keepScreenshot(page, "allocation-release");
    await page.getByRole("button", { name: "Release allocation" }).click();
    await row.waitFor({ state: "detached" });
    await page.getByLabel("Include released").check();
    await row.getByText("Released").waitFor();
    expect(complaints).toEqual([]);
  });

  it.each(["light", "dark"] as const)("fits a telephone in %s", async (colorScheme) => {
    const narrow = await visit({ viewport: { width: 390, height: 844 }, colorScheme });
    await open(narrow.page, "admin@reef.example", "/nodes");
    const pages = {
      nodes: "/nodes",
      node: `/nodes/${nodeId}`,
      task: await lastTask(),
      allocations: "/allocations?released=yes",
      overview: "/",
    };
    for (const [name, path] of Object.entries(pages)) {
      await narrow.page.goto(api.url + path);
      await narrow.page.locator("#main h1").waitFor();
      await expect.poll(() => narrow.page.getByText(/Loading/).count()).toBe(0);
      const overflow = await narrow.page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
      expect(overflow, path).toBeLessThanOrEqual(0);
      await keepScreenshot(narrow.page, `narrow-${colorScheme}-with-${name}`);
    }
    expect(narrow.complaints).toEqual([]);
  });

  it("shows the same in the dark", async () => {
    const dark = await visit({ colorScheme: "dark" });
    await open(dark.page, "admin@reef.example", `/nodes/${nodeId}`);
    await dark.page.getByText("process_alive").first().waitFor();
    await keepScreenshot(dark.page, "node-dark");
    expect(dark.complaints).toEqual([]);
  });

  it("SEC-01 lets a member read nodes and tasks, and says who may do more", async () => {
    const member = await visit();
    await open(member.page, "member@reef.example", `/nodes/${nodeId}`);
    await member.page.getByText(/Your role in REEF is member/).waitFor();
    expect(await member.page.getByRole("button", { name: /Run a task|Actions for node|^Cancel/ }).count()).toBe(0);
    await keepScreenshot(member.page, "node-as-member");
    await member.page.goto(`${api.url}/nodes`);
    await member.page.getByRole("row", { name: /rock-1/ }).waitFor();
    expect(await member.page.getByRole("button", { name: "Add a node" }).count()).toBe(0);
    expect(member.complaints).toEqual([]);
  });

  it("DASH-04 says when the page is not live, and goes on by asking", async () => {
    const cut = await visit();
    await cut.page.routeWebSocket(/\/v1\/live/, (socket) => void socket.close());
    await open(cut.page, "admin@reef.example", `/nodes/${nodeId}`);
    await cut.page.getByText("Not live, polling every 5 s").waitFor();
    await own()(changeNode, {
      params: { node_id: nodeId },
      body: { change: "drain", reason: "by somebody else" },
    });
    await cut.page.getByText("Reason: by somebody else").waitFor();
    await keepScreenshot(cut.page, "not-live");
    expect(cut.complaints).toEqual([]);
  });
});

async function lastTask(): Promise<string> {
  const created = await own()(createTask, { params: { node_id: nodeId }, body: { type: "node.noop" } });
  return `/tasks/${created.id}`;
}

/** If a test fails half way, the machine is left as it was. */
function removeUser(name: string): void {
  try {
    execFileSync("getent", ["passwd", name]);
  } catch {
    return;
  }
  execFileSync("userdel", ["--remove", name], { stdio: "ignore" });
}
