// The page in a browser, as people use it, against a real api.

import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { createProject } from "@holdfast/contracts/endpoints/projects";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, firstAdmin, PASSWORD, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";

const { visit } = openChromium();
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

const open = (page: Page, email: string, path = "/") => signIn(page, `${api.url}${path}`, email);

const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name }).waitFor();

describe.skipIf(lacks("chromium"))("the first administrator", () => {
  it("OPS-01 goes from the printed link to the overview, and the secret leaves the address bar", async () => {
    const { page, complaints } = await visit();
    const link = await api.operator()(createAdminLink, { body: {} });
    await page.goto(link.url);
    await page.getByLabel("Email").fill("root@example.com");
    expect(page.url()).toBe(`${api.url}/link`);
    await keepScreenshot(page, "first-administrator");
    await page.getByLabel("Your name").fill("First Admin");
    await page.getByLabel("New password").fill("short");
    await page.getByRole("button", { name: "Create account" }).click();
    await page.getByText("The password is too short.").waitFor();
    await page.getByLabel("New password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create account" }).click();
    await heading(page, "Overview");
    await page.getByText("Connected").waitFor();
    await keepScreenshot(page, "overview");
    await page.goto(link.url);
    await heading(page, "This link has already been used");
    await keepScreenshot(page, "link-used");
    expect(complaints).toEqual([]);
  });
});

describe.skipIf(lacks("chromium"))("signing in", () => {
  beforeAll(async () => {
    const org = await createOrg(api, "browsing");
    await addMember(api, org, "member@browsing.example", "member");
    await addMember(api, org, "owner@browsing.example", "owner");
  });

  it("SEC-03 says what is wrong, what to do and the correlation id, then lets in to where one wanted to go", async () => {
    const { page } = await visit();
    await page.goto(`${api.url}/organization`);
    await page.getByLabel("Email").fill("owner@browsing.example");
    await page.getByLabel("Password", { exact: true }).fill("not the password");
    await page.getByRole("button", { name: "Sign in" }).click();
    const alert = page.getByRole("alert");
    await alert.getByText("Email or password is wrong.").waitFor();
    expect(await alert.textContent()).toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-7/);
    await keepScreenshot(page, "sign-in-failed");
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.keyboard.press("Enter");
    await heading(page, "Organization");
    expect(new URL(page.url()).pathname).toMatch(/^\/organization/);
  });

  it("SEC-03 does not send a person on to another site", async () => {
    const { page } = await visit();
    await open(page, "owner@browsing.example", "/sign-in?to=%2F%2Fevil.example%2F");
    expect(new URL(page.url()).host).toBe(new URL(api.url).host);
  });

  it("SEC-03 works by keyboard alone", async () => {
    const { page } = await visit();
    await page.goto(`${api.url}/`);
    await page.getByLabel("Email").waitFor();
    await page.keyboard.type("member@browsing.example");
    await page.keyboard.press("Tab");
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await heading(page, "Overview");
    // On a page freshly loaded, the first stop leads past the navigation.
    await page.reload();
    await heading(page, "Overview");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toMatch(/skip/i);
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).hash).toBe("#main");
  });

  it("SEC-01 tells a member why the audit is closed to them", async () => {
    const { page } = await visit();
    await open(page, "member@browsing.example", "/audit");
    await page
      .getByText(/owner|admin/i)
      .first()
      .waitFor();
    expect(await page.getByRole("table").count()).toBe(0);
    await keepScreenshot(page, "audit-closed-to-members");
  });

  it("SEC-03 sends to sign-in when the session has ended", async () => {
    const { page } = await visit();
    await open(page, "member@browsing.example");
    await page.context().clearCookies();
    const signInButton = page.getByRole("button", { name: "Sign in" });
    // A request of the first page that is still under way may be the one that is refused.
    await page.getByRole("link", { name: "Organization", exact: true }).or(signInButton).first().click();
    await signInButton.waitFor();
    expect(new URL(page.url()).pathname).toBe("/sign-in");
  });
});

describe.skipIf(lacks("chromium"))("an administrator", () => {
  let page: Page;
  let complaints: string[];
  beforeAll(async () => {
    const fresh = await startTestApi();
    api = fresh;
    await firstAdmin(fresh);
    const other = await createOrg(fresh, "otter");
    await fresh.operator(other.id)(createProject, { body: { slug: "kelp-forest", name: "Kelp forest" } });
    ({ page, complaints } = await visit());
    await open(page, "root@example.com");
  });

  it("SEC-01 switches organizations, and every page follows", async () => {
    await page.getByRole("link", { name: "Organization", exact: true }).click();
    await page.getByRole("button", { name: /Switch organization/ }).click();
    await keepScreenshot(page, "organization-switcher");
    await page.getByRole("menuitemradio", { name: /OTTER/ }).click();
    await page.getByText("kelp-forest").first().waitFor();
    await page.reload();
    await page.getByText("kelp-forest").first().waitFor();
    expect(await page.getByRole("button", { name: /Switch organization/ }).textContent()).toContain("OTTER");
    await keepScreenshot(page, "projects");
  });

  it("SEC-03 makes a token, shows it once, and revokes it", async () => {
    await page.goto(`${api.url}/organization/tokens`);
    await page.getByRole("button", { name: "New token" }).first().click();
    await page.getByLabel("Name").fill("from the page");
    await page.getByRole("button", { name: "Create token" }).click();
    const secret = page.getByLabel("API token", { exact: true });
    await secret.waitFor();
    expect(await secret.inputValue()).toMatch(/^hft_[\w-]{43}$/);
    await keepScreenshot(page, "token-shown-once");
    await page.keyboard.press("Escape");
    expect(await secret.isVisible(), "a secret shown once is not lost by a slip").toBe(true);
    await page.getByRole("button", { name: "Done" }).click();
    await secret.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Actions for token from the page" }).click();
    await page.getByRole("menuitem", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke token" }).click();
    await page.getByRole("row", { name: /from the page.*revoked/i }).waitFor();
  });

  it("SEC-03 invites somebody, shows the open invitation and cancels it", async () => {
    await page.goto(`${api.url}/organization/members`);
    await page.getByRole("button", { name: "Invite member" }).click();
    await page.getByLabel("Email").fill("next@example.com");
    await page.getByRole("button", { name: "Create invitation" }).click();
    expect(await page.getByLabel("Invitation link", { exact: true }).inputValue()).toContain("/link#hfl_");
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("row", { name: /next@example.com/ }).waitFor();
    await keepScreenshot(page, "members");
    await page.getByRole("button", { name: "Actions for invitation of next@example.com" }).click();
    await page.getByRole("menuitem", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel invitation" }).click();
    await page.getByRole("row", { name: /next@example.com/ }).waitFor({ state: "detached" });
  });

  it("AUDIT-01 finds an event and follows its correlation id", async () => {
    await page.goto(`${api.url}/audit`);
    await page.getByRole("table", { name: "Audit events" }).waitFor();
    await page.getByLabel("Action").fill("token.");
    await expect.poll(() => page.url()).toContain("action=token.");
    await expect.poll(() => page.getByRole("button", { name: "Details of project.create" }).count()).toBe(0);
    await page.getByRole("button", { name: "Details of token.create" }).first().click();
    await keepScreenshot(page, "audit-event");
    await page.getByRole("button", { name: "Show all with this correlation id" }).click();
    await expect.poll(() => page.url()).toContain("correlation_id=");
    await expect.poll(() => page.getByRole("button", { name: /^Details of/ }).count()).toBe(1);
    await keepScreenshot(page, "audit");
    await page.goto(`${api.url}/audit?action=no.such`);
    await page
      .getByText(/no event/i)
      .first()
      .waitFor();
  });

  it("reads the API reference, which has every endpoint", async () => {
    await page.goto(`${api.url}/reference`);
    await heading(page, "API reference");
    // Asked once: looking for each text takes half a second on this page.
    const summaries = await page.locator("main h3").allTextContents();
    for (const endpoint of allEndpoints) expect(summaries, endpoint.name).toContain(endpoint.summary);
    await keepScreenshot(page, "reference");
  });

  const pages = [
    "/",
    "/nodes",
    "/allocations",
    "/terminals",
    "/audit",
    "/organization",
    "/organization/members",
    "/organization/tokens",
    "/account",
    "/reference",
    "/no-such-page",
  ];

  it.each(["light", "dark"] as const)("fits a telephone in %s, on every page", async (colorScheme) => {
    const narrow = await visit({ viewport: { width: 390, height: 844 }, colorScheme });
    await open(narrow.page, "root@example.com");
    for (const path of pages) {
      await narrow.page.goto(api.url + path);
      await narrow.page.getByRole("heading", { level: 1 }).first().waitFor();
      const overflow = await narrow.page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
      expect(overflow, path).toBeLessThanOrEqual(0);
      await keepScreenshot(narrow.page, `narrow-${colorScheme}${path.replaceAll("/", "-")}`);
    }
    expect(narrow.complaints).toEqual([]);
  });

  it("SEC-03 lives within its Content-Security-Policy on every page", async () => {
    for (const path of pages) {
      await page.goto(api.url + path);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
    }
    expect(complaints).toEqual([]);
  });

  it("says that the server is away, and recovers by itself", async () => {
    const { page: own } = await visit();
    await open(own, "root@example.com");
    await own.context().setOffline(true);
    const away = own.getByText("Holdfast is unreachable.");
    // Before anything is requested.
    await away.first().waitFor();
    await own.getByRole("link", { name: "Audit" }).click();
    await keepScreenshot(own, "server-away");
    await own.context().setOffline(false);
    await expect.poll(() => away.count()).toBe(0);
    await heading(own, "Audit");
    expect(new URL(own.url()).pathname).toBe("/audit");
  });
});
