// Sharing and transferring an allocation, and the limits, as people see them in a browser.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { enrollTestNode } from "../../testkit/api/nodes.ts";
import { sendProfileHeartbeat } from "../../testkit/api/terminals.ts";
import { keepScreenshot, openChromium, pick } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { openRoles } from "../../testkit/database/database.ts";

describe.skipIf(lacks("chromium"))("an allocation's page", () => {
  const { visit } = openChromium();
  let api: TestApi;
  let kelp: TestOrg;
  let ada: Browser;
  let allocationId: string;

  beforeAll(async () => {
    api = await startTestApi();
    kelp = await createOrg(api, "kelp");
    ada = await addMember(api, kelp, "ada@kelp.example", "member");
    await addMember(api, kelp, "bob@kelp.example", "member");
    await addMember(api, kelp, "root@kelp.example", "admin");
    const node = await enrollTestNode(api, kelp.id, { hostname: "reef-1" });
    await sendProfileHeartbeat(node, node.enrolled.profile.version);
    const body = { node_id: node.id, username: "alice" };
    ({ id: allocationId } = await ada.client(kelp.id)(createAllocation, { body }));
    const { superuser } = openRoles(api.database);
    await superuser`UPDATE allocations SET status = 'active', home = '/home/alice', active_at = now()`;
  });

  const open = (page: Page, email: string, path: string) => signIn(page, `${api.url}${path}`, email);

  it("SEC-01 shows its owner, is shared and taken back there, and the other member sees it meanwhile", async () => {
    const [own, other] = await Promise.all([visit(), visit()]);
    const path = `/allocations/${allocationId}`;
    await open(other.page, "bob@kelp.example", path);
    await other.page.getByText("Allocation not found").waitFor();
    await open(own.page, "ada@kelp.example", path);
    const sharing = own.page.getByRole("region", { name: "Sharing" });
    await sharing.getByText("Only the owner and administrators have access.").waitFor();
    await own.page.getByText("ada@kelp.example (you)").waitFor();
    expect(await own.page.getByRole("button", { name: "Transfer" }).count()).toBe(0);
    await sharing.getByRole("button", { name: "Share" }).click();
    const dialog = own.page.getByRole("dialog");
    await pick(dialog, "Member", "bob@kelp");
    await dialog.getByLabel("Use: also open terminals").check();
    await keepScreenshot(own.page, "allocation-share");
    await dialog.getByRole("button", { name: "Share", exact: true }).click();
    await sharing.getByText("bob@kelp.example").waitFor();
    await keepScreenshot(own.page, "allocation-shared");
    await other.page.reload();
    await other.page.getByText("Use: open terminals").waitFor();
    await other.page.getByRole("link", { name: "Open terminal of alice on reef-1" }).waitFor();
    expect(await other.page.getByRole("button", { name: "Release" }).count()).toBe(0);
    expect(await other.page.getByRole("region", { name: "Sharing" }).count()).toBe(0);
    await keepScreenshot(other.page, "allocation-granted");
    await sharing.getByRole("button", { name: "Revoke access of bob" }).click();
    await own.page.getByRole("button", { name: "Revoke access", exact: true }).click();
    await sharing.getByText("Only the owner and administrators have access.").waitFor();
    await other.page.goto(`${api.url}/allocations`);
    await other.page.getByText("No allocations yet").waitFor();
    expect(own.complaints).toEqual([]);
  });

  it("SEC-01 lets an administrator transfer it, and change the limits", async () => {
    const { page, complaints } = await visit();
    await open(page, "root@kelp.example", `/allocations/${allocationId}`);
    await page.getByRole("button", { name: "Transfer" }).click();
    const dialog = page.getByRole("dialog");
    await pick(dialog, "New owner", "bob@kelp");
    await keepScreenshot(page, "allocation-transfer");
    await dialog.getByRole("button", { name: "Transfer" }).click();
    await page.getByRole("definition").filter({ hasText: "bob@kelp.example" }).waitFor();
    await page.goto(`${api.url}/allocations`);
    await page.getByRole("cell", { name: "bob@kelp.example" }).waitFor();
    await keepScreenshot(page, "allocations-owners");
    await page.getByLabel("Owner").selectOption("me");
    await page.getByText("No allocation matches").waitFor();
    await page.goto(`${api.url}/organization/members`);
    const limits = page.getByRole("region", { name: "Allocation limits" });
    await limits.getByText("1 of 500 in use").waitFor();
    await limits.getByRole("button", { name: "Change" }).click();
    await page.getByRole("dialog").getByLabel("Each member").fill("3");
    await page.getByRole("button", { name: "Change limits" }).click();
    await limits.getByText("up to 3").waitFor();
    await keepScreenshot(page, "allocation-limits");
    expect(complaints).toEqual([]);
  });
});
