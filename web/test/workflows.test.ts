// Workflows in a browser, with an api and a worker: one is built from an empty page, run, watched as it fails, corrected and retried
// from there; approvals, conflicts and versions.

import { startRun } from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { readSettings } from "@holdfast/kit/settings";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { loginEnvironment } from "../../control-plane/src/database/settings.ts";
import { startWorker } from "../../control-plane/src/worker/main.ts";
import { workerSettings } from "../../control-plane/src/worker/settings.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, PASSWORD, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { startInside } from "../../testkit/lifetime/start-inside.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";

const { visit } = openChromium();
let api: TestApi;
let server: WebhookServer;
let orgId: string;

beforeAll(async () => {
  api = await startTestApi();
  server = await startWebhookServer();
  server.answer = (response) => response.setHeader("content-type", "application/json").end('{"ready":true}');
  const settings = readSettings(workerSettings, {
    ...loginEnvironment(api.database),
    HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1",
  });
  await startInside("worker", (log) => startWorker(settings, log));
  const org = await createOrg(api, "tidewater");
  orgId = org.id;
  await addMember(api, org, "owner@tidewater.example", "owner");
  await addMember(api, org, "member@tidewater.example", "member");
});

async function signIn(page: Page, email: string, path: string): Promise<void> {
  await page.goto(`${api.url}${path}`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

async function publish(name: string, source: string): Promise<string> {
  const own = api.operator(orgId);
  const { id, problems } = await own(applyWorkflow, { body: { name, source } });
  expect(problems).toEqual([]);
  await own(publishWorkflow, { params: { workflow_id: id }, body: {} });
  return id;
}

const editorText = (page: Page) => page.getByRole("textbox", { name: "Workflow as YAML" });
const mainButton = (page: Page, name: string) => page.getByRole("main").getByRole("button", { name, exact: true });

describe.skipIf(lacks("chromium"))("workflows", () => {
  it("DASH-06 FLOW-01 are built from an empty page, run, corrected after a failure and retried from there", async () => {
    const { page, complaints } = await visit();
    await signIn(page, "owner@tidewater.example", "/workflows");
    await page.getByText("No workflows yet").waitFor();
    await keepScreenshot(page, "workflows-empty");
    await page.getByRole("button", { name: "New workflow" }).click();
    await page.getByLabel("Name").fill("reef-check");
    await page.getByRole("button", { name: "Create workflow" }).click();
    await page.getByText("There are no steps yet").waitFor();
    await keepScreenshot(page, "workflow-empty");

    await page.getByRole("button", { name: "HTTP request" }).click();
    await page.getByLabel("Id", { exact: true }).fill("fetch");
    await page.getByLabel("Id", { exact: true }).press("Enter");
    await page.getByLabel("URL").fill(server.url);
    await page.getByRole("button", { name: "Add step" }).click();
    await page.getByRole("menuitem", { name: "Condition" }).click();
    await page.getByLabel("If", { exact: true }).fill("nodes.fetch.output.body.nothing.");
    await page.getByRole("list", { name: "Problems" }).getByRole("listitem").first().waitFor();
    await keepScreenshot(page, "workflow-problem");
    await page.getByLabel("If", { exact: true }).fill("nodes.fetch.output.body.ready");
    await page.getByText("No problems").waitFor();
    await page.getByRole("button", { name: "Add step" }).click();
    await page.getByRole("menuitem", { name: "HTTP request" }).click();
    await page.getByLabel("Title").fill("Tell the harbour");
    await page.getByLabel("URL").fill("http://127.0.0.1:1/");
    await page.getByLabel("Not after check, true").waitFor();
    await expect.poll(() => editorText(page).textContent()).toContain("after: [ check.true ]");
    await page.getByText("No problems").waitFor();
    await keepScreenshot(page, "workflow-editor");

    await page.locator('.react-flow__node[data-id="check"]').click();
    await page.getByRole("button", { name: "Test step" }).click();
    const test = page.getByRole("dialog");
    await test.getByLabel("Output of fetch").fill('{ "body": { "ready": true } }');
    await test.getByRole("button", { name: "Run step" }).click();
    await test.getByRole("status").getByText("Succeeded").waitFor();
    await keepScreenshot(page, "workflow-step-test");
    await test.getByRole("button", { name: "Close" }).last().click();
    expect(server.received).toEqual([]);

    await page.getByRole("button", { name: "Save and publish" }).click();
    await page.getByText("Published version 1").waitFor();
    await mainButton(page, "Run").click();
    await page.getByLabel("Input").fill('{ "site": "north" }');
    await page.getByRole("button", { name: "Run version 1" }).click();
    await page.getByRole("heading", { level: 1, name: "Run of reef-check" }).waitFor();
    await page.getByRole("status").getByText("Failed").waitFor();
    const steps = page.getByRole("list", { name: "Steps" });
    expect(await steps.getByRole("button", { name: /^fetch.*Succeeded/ }).count()).toBe(1);
    await steps.getByRole("button", { name: /^Tell the harbour.*Failed/ }).waitFor();
    await page.getByRole("list", { name: "Events" }).getByText("run_failed").waitFor();
    await keepScreenshot(page, "run-failed");
    const run = page.url();

    await page.getByRole("link", { name: "reef-check, version 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: /^Tell the harbour/ }).click();
    await page.getByLabel("URL").fill(`${server.url}harbour`);
    await page.getByRole("button", { name: "Save and publish" }).click();
    await page.getByText("Published version 2").waitFor();
    const before = server.received.length;
    await page.goto(run);
    await mainButton(page, "Retry").click();
    await page.getByRole("dialog").getByText("Version 2").first().waitFor({ state: "attached" });
    await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
    await page.getByRole("status").getByText("Succeeded").waitFor();
    await page.getByRole("list", { name: "Events" }).getByText("run_retried").waitFor();
    await keepScreenshot(page, "run-retried");
    // What has succeeded was not repeated.
    expect(server.received.slice(before)).toHaveLength(1);

    await page.goto(`${api.url}/workflows`);
    const row = page.getByRole("row", { name: /reef-check/ });
    await row.getByRole("img", { name: "Last run: succeeded" }).waitFor();
    await row.getByText("Version 2").waitFor();
    await keepScreenshot(page, "workflows");
    expect(complaints).toEqual([]);
  });

  it("DASH-06 show what a run waits for as it happens, take an approval, and are found by id", async () => {
    const id = await publish(
      "deploy",
      `version: "1"\nnodes:\n  ask:\n    type: wait\n    approval: { message: "Deploy to \${{ input.site }}?" }\n  pause: { type: wait, after: [ask], for: 2h }\n`,
    );
    const { page, complaints } = await visit();
    await signIn(page, "owner@tidewater.example", `/runs?workflow_id=${id}`);
    await page.getByText("No run matches these filters.").waitFor();
    const run = await api.operator(orgId)(startRun, {
      params: { workflow_id: id },
      body: { input: { site: "north" } },
    });
    await page.getByRole("link", { name: `Open run ${run.id}` }).click();
    const waiting = page.getByRole("list", { name: "Waiting for" });
    await waiting.getByText("Deploy to north?").waitFor();
    await keepScreenshot(page, "run-waiting");
    await page.getByRole("button", { name: "Approve ask" }).click();
    await page
      .getByRole("list", { name: "Steps" })
      .getByRole("button", { name: /^ask.*Succeeded/ })
      .waitFor();
    await waiting.getByText("Time: 1 h 59 min").waitFor();
    await page.getByRole("button", { name: /^Cancel run/ }).click();
    await page.getByRole("status").getByText("Cancelled").waitFor();
    await page.goto(`${api.url}/runs`);
    await page.getByLabel("Run id").fill(run.id);
    await page.getByRole("link", { name: `Open run ${run.id}` }).waitFor();
    await page.getByLabel("Run id").fill("019a0000-0000-7000-8000-000000000000");
    await page.getByText("No run matches these filters.").waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${api.url}/runs/${run.id}`);
    await page.getByRole("list", { name: "Steps" }).waitFor();
    await keepScreenshot(page, "run-narrow");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(complaints).toEqual([]);
  });

  it("DASH-06 keep what was typed when somebody else saved meanwhile, and comments when the graph is edited", async () => {
    const source =
      '# Ours.\nversion: "1"\nnodes:\n  first: { type: parallel } # one\n  second: { type: parallel }\n';
    const id = await publish("shared", source);
    const { page, complaints } = await visit();
    await signIn(page, "owner@tidewater.example", `/workflows/${id}`);
    const from = page.locator('.react-flow__node[data-id="first"] .react-flow__handle-bottom');
    const to = page.locator('.react-flow__node[data-id="second"] .react-flow__handle-top');
    await from.dragTo(to);
    await expect.poll(() => editorText(page).textContent()).toContain("after: [ first ]");
    expect(await editorText(page).textContent()).toContain("# one");
    await api.operator(orgId)(applyWorkflow, { body: { name: "shared", source: `${source}# Theirs.\n` } });
    await page.getByRole("button", { name: "Save draft" }).click();
    await page.getByText("saved this draft meanwhile").waitFor();
    await keepScreenshot(page, "workflow-conflict");
    expect(await editorText(page).textContent()).toContain("after: [ first ]");
    await page.getByRole("button", { name: "Replace theirs with yours" }).click();
    await page.getByText("Draft saved").waitFor();
    await page.getByText("Unpublished changes").waitFor();
    await page.getByRole("button", { name: "Versions" }).click();
    const differences = page.getByRole("region", { name: "Differences" });
    await differences.getByText("added").waitFor({ state: "attached" });
    expect(await differences.textContent()).toContain("after: [ first ]");
    await keepScreenshot(page, "workflow-versions");
    await page.keyboard.press("Escape");

    await editorText(page).click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("oops: [");
    await page.getByText("The text cannot be read.").waitFor();
    await page.getByRole("main").getByRole("link", { name: "Workflows" }).click();
    await page.getByText("Leave without saving?").waitFor();
    await page.getByRole("button", { name: "Discard changes" }).click();
    await page.getByRole("heading", { level: 1, name: "Workflows" }).waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${api.url}/workflows/${id}`);
    await page.getByText("No problems").waitFor();
    await keepScreenshot(page, "workflow-narrow");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(complaints).toEqual([]);
  });

  it("DASH-06 are shown to a member, who can change and run nothing", async () => {
    const id = await publish("fixed", 'version: "1"\nnodes:\n  only: { type: parallel }\n');
    const { page } = await visit();
    await signIn(page, "member@tidewater.example", `/workflows/${id}`);
    await page.getByText("You may read it only.").waitFor();
    for (const name of ["Save draft", "Publish", "Run", "Add step"]) {
      expect(await mainButton(page, name).count()).toBe(0);
    }
  });
});
