// The page Secrets in a browser: a secret is created, replaced, used and deleted, and its value is nowhere on the page.

import { setSecret } from "@holdfast/contracts/endpoints/secrets";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { openRoles } from "../../testkit/database/database.ts";

const VALUE = "CANARY-value\nof two lines";
const { visit } = openChromium();
let api: TestApi;
let org: TestOrg;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "tidewater");
  await addMember(api, org, "owner@tidewater.example", "owner");
  await addMember(api, org, "member@tidewater.example", "member");
});

const open = (page: Page, email: string) => signIn(page, `${api.url}/secrets`, email);

/** An execution that got it, as a dispatch stores it. */
async function use(name: string, workflow: string): Promise<void> {
  const { superuser } = openRoles(api.database);
  const id = uuidv7();
  await superuser`
    INSERT INTO executions (id, org_id, request_id, run_id, workflow_id, step_id, step_type, attempt, user_id, kind, shell,
      timeout_ms, status, wait_until, error, asked_by, correlation_id, finished_at, secret_id, secret_version)
    SELECT ${id}, org_id, ${`${id}:deploy:1`}, ${id}, ${workflow}, 'deploy', 'agent.execute', 1, ${uuidv7()}, 'agent.execute', false,
      1000, 'unplaced', now(), 'NO_AGENT_AVAILABLE', ${uuidv7()}, 'a-request', now(), id, version
    FROM secrets WHERE name = ${name}`;
}

describe.skipIf(lacks("chromium"))("the page Secrets", () => {
  it("SEC-02 creates, replaces, shows the use of and deletes a secret, and never shows its value", async () => {
    const { page, complaints } = await visit();
    await open(page, "owner@tidewater.example");
    await page.getByText("No secrets yet").waitFor();
    await page.getByRole("button", { name: "New secret" }).first().click();
    await page.getByRole("textbox", { name: "Name" }).fill("deploy-key");
    await page.getByRole("textbox", { name: "Value" }).fill(VALUE);
    await keepScreenshot(page, "secrets-new");
    await page.getByRole("button", { name: "Create secret" }).click();
    const rows = page.getByRole("table", { name: "Secrets" }).getByRole("row");
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.content()).not.toContain("CANARY");

    const act = async (item: string) => {
      await page.getByRole("button", { name: "Actions for secret deploy-key" }).click();
      await page.getByRole("menuitem", { name: item }).click();
    };
    await act("Replace value");
    await page.getByRole("textbox", { name: "Value" }).fill("too-few");
    await page.getByRole("button", { name: "Replace value" }).click();
    expect(
      await page
        .getByRole("textbox", { name: "Value" })
        .evaluate((field: unknown) => (field as { validity: { tooShort: boolean } }).validity.tooShort),
    ).toBe(true);
    await page.getByRole("textbox", { name: "Value" }).fill(`${VALUE} 2`);
    await page.getByRole("button", { name: "Replace value" }).click();
    await rows.nth(1).getByRole("cell", { name: "2", exact: true }).waitFor();
    await act("New data key");
    await page.getByRole("button", { name: "Encrypt again" }).click();
    await page.getByText("deploy-key has a new data key").waitFor();

    await use("deploy-key", "nightly");
    await use("deploy-key", "release");
    await api.operator(org.id)(setSecret, {
      body: { name: "registry.token", value: VALUE, members_may_use: true },
    });
    await page.reload();
    await rows.nth(1).getByText("2 executions").waitFor();
    await keepScreenshot(page, "secrets");
    await act("Used by");
    const workflows = page.getByRole("table", { name: "Workflows" });
    await workflows.getByRole("cell", { name: "nightly" }).waitFor();
    await keepScreenshot(page, "secrets-used-by");
    await page.keyboard.press("Escape");
    await act("Delete");
    await page.getByText("2 executions have used it, of the workflows release, nightly.").waitFor();
    await keepScreenshot(page, "secrets-delete");
    await page.getByRole("button", { name: "Delete secret" }).click();
    await page.getByText("Deleted deploy-key").waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.content()).not.toContain("CANARY");
    expect(complaints).toEqual([]);
  });

  it("SEC-01 shows members what they may use, and nothing to change it with", async () => {
    await api.operator(org.id)(setSecret, { body: { name: "hidden", value: VALUE } });
    await api.operator(org.id)(setSecret, {
      body: { name: "registry.token", value: VALUE, members_may_use: true },
    });
    const { page } = await visit();
    await open(page, "member@tidewater.example");
    await page.getByText("registry.token").waitFor();
    expect(await page.getByText("hidden").count()).toBe(0);
    expect(await page.getByRole("button", { name: "New secret" }).count()).toBe(0);
    await page.getByRole("button", { name: "Actions for secret registry.token" }).click();
    expect(await page.getByRole("menuitem").allTextContents()).toEqual(["Used by"]);
  });
});
