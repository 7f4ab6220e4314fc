// The account page in a browser: the sessions of a person, ending one and all of them; and what ends with a member.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { inviteMember } from "@holdfast/contracts/endpoints/members";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import type { Page } from "playwright-core";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import {
  addMember,
  type Browser,
  createOrg,
  PASSWORD,
  signInAs,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";

const { visit } = openChromium();
let api: TestApi;
let org: TestOrg;
let email: string;
let elsewhere: Browser;
let count = 0;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "tidewater");
});

beforeEach(async () => {
  count += 1;
  email = `ada-${count}@tidewater.example`;
  elsewhere = await addMember(api, org, email, "owner");
});

const open = (page: Page, path: string, password = PASSWORD) => signIn(page, `${api.url}${path}`, email, password);

const isSignedIn = (browser: Browser) =>
  browser
    .client()(getMe, {})
    .then(
      () => true,
      () => false,
    );

const issue = async (by: Browser) => {
  const client = by.client();
  const made = await client(createToken, { body: { name: "laptop", role: "admin" } });
  await client(createEnrollmentToken, { body: { kind: "bootstrap", node_name: `vm-${count}` } });
  return made;
};

describe.skipIf(lacks("chromium"))("the account page", () => {
  it("SEC-03 lists the sessions, marks this one, and ends another", async () => {
    const { page, complaints } = await visit();
    await open(page, "/account");
    const rows = page.getByRole("table", { name: "Sessions" }).getByRole("row");
    await page.getByText("this one").waitFor();
    expect(await rows.count()).toBe(3);
    const own = await rows.filter({ hasText: "this one" }).textContent();
    expect(own).toContain("Chrome on Linux");
    expect(own).toContain("127.0.0.1");
    await keepScreenshot(page, "account");
    await page.getByRole("button", { name: /^End session Node\.js/ }).click();
    await page.getByText("Session ended: Node.js").waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    expect(await isSignedIn(elsewhere)).toBe(false);
    expect(complaints).toEqual([]);
  });

  it("SEC-03 changes the password, revokes tokens if chosen, and keeps this browser signed in", async () => {
    const { token } = await issue(elsewhere);
    const { page } = await visit();
    await open(page, "/account");
    await page.getByLabel("Current password").fill(PASSWORD);
    await page.getByLabel("New password").fill("something else entirely");
    const form = page.getByRole("form", { name: "Change password" });
    await form.getByText("Also revoke what I made: 1 API token and 1 bootstrap token").click();
    await form.getByText(`holdfast node token create --bootstrap --node vm-${count}`).waitFor();
    await keepScreenshot(page, "account-password");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("Password changed; revoked 1 API token and 1 bootstrap token").waitFor();
    expect(await isSignedIn(elsewhere)).toBe(false);
    const me = await fetch(`${api.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
    expect(me.status).toBe(401);
    await page.reload();
    await page.getByText("this one").waitFor();
  });

  it("SEC-03 signs out everywhere, with the offer to revoke tokens", async () => {
    await issue(elsewhere);
    const { page } = await visit();
    await open(page, "/account");
    await page.getByRole("button", { name: "Sign out everywhere" }).click();
    const dialog = page.getByRole("alertdialog", { name: "Sign out everywhere?" });
    await dialog.getByText("Also revoke what I made").waitFor();
    await keepScreenshot(page, "sign-out-everywhere");
    await dialog.getByRole("button", { name: "Sign out everywhere" }).click();
    await page.waitForURL(/sign-in/);
    expect(await isSignedIn(elsewhere)).toBe(false);
    expect((await signInAs(api, email)).me.email).toBe(email);
  });
});

describe.skipIf(lacks("chromium"))("removing or demoting a member", () => {
  it("SEC-01 says how many tokens of which kind end, and which nodes depend on them", async () => {
    const leaver = await addMember(api, org, `bob-${count}@tidewater.example`, "admin");
    await issue(leaver);
    const { page } = await visit();
    await open(page, "/organization/members");
    await page.getByRole("button", { name: `Actions for bob-${count}` }).click();
    await page.getByRole("menuitem", { name: "Change role" }).click();
    await page.getByRole("dialog").getByLabel("Role").selectOption("member");
    await page.getByRole("dialog").getByText("1 API token and 1 bootstrap token").waitFor();
    await keepScreenshot(page, "member-demote");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: `Actions for bob-${count}` }).click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    const dialog = page.getByRole("alertdialog");
    await dialog.getByText("1 API token and 1 bootstrap token").waitFor();
    await dialog.getByText(`holdfast node token create --bootstrap --node vm-${count}`).waitFor();
    await keepScreenshot(page, "member-remove");
    await dialog.getByRole("button", { name: "Remove member" }).click();
    await page.getByText(`Removed bob-${count}`).waitFor();
    expect(await isSignedIn(leaver)).toBe(true);
  });
});

describe.skipIf(lacks("chromium"))("an invitation", () => {
  const open = async (invited: string) => {
    const { url } = await elsewhere.client()(inviteMember, { body: { email: invited } });
    const { page } = await visit();
    await page.goto(url);
    await page.getByRole("heading", { name: "Join TIDEWATER" }).waitFor();
    return page;
  };

  it("SEC-03 lets the person say whether they are new, and looks the same for everybody", async () => {
    const reef = await createOrg(api, `reef-${count}`);
    const known = `known-${count}@reef.example`;
    await addMember(api, reef, known, "member");
    const page = await open(known);
    const fresh = await open(`fresh-${count}@reef.example`);
    const textOf = async (one: Page) =>
      (await one.getByRole("main").or(one.locator("body")).first().textContent()) ?? "";
    expect(await textOf(page)).toBe(await textOf(fresh));
    await keepScreenshot(page, "invitation");
    await page.getByLabel("I have an account").check();
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Accept invitation" }).click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    await fresh.getByLabel("Your name").fill("Fresh");
    await fresh.getByLabel("New password").fill(PASSWORD);
    await fresh.getByRole("button", { name: "Accept invitation" }).click();
    await fresh.getByRole("navigation", { name: "Main" }).waitFor();
  });
});
