// The notifications of an organization in a browser: a receiver is added, tested and removed, and its history is shown.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";

const { visit } = openChromium();
let api: TestApi;
let receiver: WebhookServer;

beforeAll(async () => {
  receiver = await startWebhookServer();
  api = await startTestApi({ env: { HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1" } });
  const org = await createOrg(api, "tidewater");
  await addMember(api, org, "owner@tidewater.example", "owner");
  await addMember(api, org, "member@tidewater.example", "member");
});

const open = (page: Page, email: string) => signIn(page, `${api.url}/organization/notifications`, email);

describe.skipIf(lacks("chromium"))("the notifications tab", () => {
  it("DRIFT-16 adds a webhook, shows its secret once, tests it, shows the delivery, and removes it", async () => {
    const { page, complaints } = await visit();
    await open(page, "owner@tidewater.example");
    await page.getByText("No receivers yet").waitFor();
    await page.getByRole("button", { name: "New receiver" }).click();
    await page.getByLabel("URL").fill(receiver.url);
    await page.getByRole("button", { name: "Create receiver" }).click();
    const secret = page.getByRole("dialog").getByRole("textbox", { name: "Secret" });
    expect(await secret.inputValue()).toMatch(/^hfw_[\w-]{43}$/);
    await page.getByRole("button", { name: "Done" }).click();
    const receivers = page.getByRole("table", { name: "Receivers" }).getByRole("row");
    await expect.poll(() => receivers.count()).toBe(2);
    expect(await receivers.nth(1).textContent()).not.toContain("secret-path");
    await page.getByRole("button", { name: /^Actions for receiver/ }).click();
    await page.getByRole("menuitem", { name: "Send test message" }).click();
    const deliveries = page.getByRole("table", { name: "Deliveries" });
    await deliveries.getByText("200 thank you").waitFor();
    expect(receiver.received.map(({ headers }) => headers["x-holdfast-event"])).toEqual(["receiver.test"]);
    await keepScreenshot(page, "notifications");
    await page.getByRole("button", { name: /^Actions for receiver/ }).click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove receiver" }).click();
    await page.getByText("No receivers yet").waitFor();
    await deliveries.getByText("200 thank you").waitFor();
    expect(complaints).toEqual([]);
  });

  it("DRIFT-16 is closed to members", async () => {
    const { page } = await visit();
    await open(page, "member@tidewater.example");
    await page.getByText("Your role cannot read notifications").waitFor();
    expect(await page.getByRole("button", { name: "New receiver" }).count()).toBe(0);
  });
});
