// The nodes page of a large fleet in a browser: seen at a glance, searched, opened by mouse and keyboard, live.

import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import type { Sql } from "../../control-plane/src/database/connect.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyAll, RACK, retireFleet, seedFleet } from "../../testkit/api/fleet.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { keepScreenshot, openChromium, pick } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { openRoles } from "../../testkit/database/database.ts";

const { visit } = openChromium();
let api: TestApi;
let org: TestOrg;
let superuser: Sql;
let page: Page;
let complaints: string[];

const SIZE = 2_000;

async function open(at: Page, path: string): Promise<void> {
  await signIn(at, `${api.url}${path}`, "night@reef.example");
  await at.locator("canvas").waitFor();
}

describe.skipIf(lacks("chromium"))("an operator at night", () => {
  beforeAll(async () => {
    api = await startTestApi({ env: { HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS: "3600" } });
    ({ superuser } = openRoles(api.database));
    org = await createOrg(api, "reef");
    await addMember(api, org, "night@reef.example", "admin");
    await seedFleet(superuser, org.id, SIZE, (number) => {
      const rack = Math.floor(number / RACK);
      if (rack === 7) return { silentSeconds: 4_000 };
      if (rack % 20 === 3 && number % 3 === 0) return { version: "1.3.2", finding: "disk_full" };
      if (number % 400 === 1) return { status: "quarantined" };
      return rack === 12 ? { status: "draining" } : {};
    });
    ({ page, complaints } = await visit());
    await open(page, "/nodes");
  });

  const fleet = () => page.getByRole("region", { name: "The fleet" });
  const picture = () => page.getByRole("application", { name: /^Picture of/ });

  it("DASH-01 sees how many are not fine, what they share and what to do", async () => {
    await fleet().getByText("69 of 2,000 nodes are unhealthy").waitFor();
    const wrong = fleet().getByRole("list", { name: "Problems" });
    await wrong.getByText("No heartbeat: 32 nodes").waitFor();
    await wrong.getByText(/^32 of your nodes in subnet 10\.0\.7\.0\/24 have the same problem since/).waitFor();
    await wrong.getByText(/^32 of your nodes with agent version 1\.3\.2 have the same problem since/).waitFor();
    await wrong.getByText(/holdfast agent diagnose/).waitFor();
    await page.getByText("1–50 of 2,000 nodes").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await keepScreenshot(page, "fleet");
  });

  it("DASH-01 is told which node a cell is, and opens it with the mouse", async () => {
    const box = await page.locator("canvas").boundingBox();
    if (!box) throw new Error("there is no picture");
    await page.mouse.move(box.x + 4, box.y + 28);
    await picture().getByText("sim-00224", { exact: true }).waitFor();
    await picture().getByText("The node's heartbeats stopped.").waitFor();
    await keepScreenshot(page, "fleet-cell");
    await page.mouse.down();
    await page.mouse.up();
    await page.getByRole("heading", { level: 1, name: "sim-00224" }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/nodes\/[0-9a-f-]{36}$/);
    // What it reported last is old, and says so; nothing of it is green.
    await page
      .getByRole("region", { name: "Machine" })
      .getByText(/^as of /)
      .waitFor();
    await page.getByRole("region", { name: "Heartbeat" }).getByText("Not reporting").waitFor();
    await keepScreenshot(page, "node-not-reporting");
    await page.goBack();
  });

  it("DASH-01 moves between nodes with the keyboard, and announces which one is selected", async () => {
    await page.mouse.move(0, 0);
    await page.locator("canvas").waitFor();
    await picture().focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const said = picture().getByRole("status");
    await expect.poll(() => said.textContent()).toBe("sim-00225: Offline, No heartbeat");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "sim-00225" }).waitFor();
    await page.goBack();
  });

  it("DASH-01 narrows it down, keeps that in the address, and turns pages", async () => {
    await fleet()
      .getByRole("link", { name: /with agent version 1\.3\.2/ })
      .click();
    await expect.poll(() => new URL(page.url()).search).toBe("?attention=disk_full&version=1.3.2");
    await page.getByText("1–32 of 32 nodes").waitFor();
    await page.getByText("32 nodes with these filters.").waitFor();
    await page.reload();
    await page.getByText("1–32 of 32 nodes").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByLabel("Search").fill("10.0.9.1");
    await page.getByText("1–11 of 11 nodes").waitFor();
    await page.getByLabel("Search").fill("");
    await page.getByText("1–50 of 2,000 nodes").waitFor();
    // The worst first: behind 69 unhealthy nodes comes the newest of the others.
    await page.getByRole("row", { name: /sim-00001.*Quarantined.*P0/ }).waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("51–100 of 2,000 nodes").waitFor();
    await page.getByRole("row", { name: /sim-02000/ }).waitFor();
    await page.getByLabel("Group by").selectOption("block");
    await expect.poll(() => page.url()).toContain("group=block");
    await keepScreenshot(page, "fleet-by-block");
  });

  it("DASH-04 sees a rack come back without asking, and most of the fleet go dark", async () => {
    await superuser`UPDATE node_presence SET heartbeat_at = now() WHERE org_id = ${org.id}`;
    await fleet().getByText("37 of 2,000 nodes are unhealthy").waitFor();
    await superuser`
      UPDATE node_presence p SET heartbeat_at = now() - interval '61 minutes' FROM nodes n
      WHERE n.id = p.node_id AND p.org_id = ${org.id} AND n.name > 'sim-00300'`;
    // Offline at once; what explains it follows when it is classified, without a reload.
    await fleet().getByText("1,675 nodes offline, cause being determined").waitFor();
    await keepScreenshot(page, "fleet-dark-at-once");
    await classifyAll(superuser, { heartbeatStaleAfterMs: 3_600_000 });
    await fleet().getByText("No heartbeat: 1,675 nodes").waitFor();
    const alert = page.getByRole("alert");
    await alert.getByText(/went offline at the same time.*1675 of your nodes are affected/).waitFor();
    await alert.getByText(/Do not quarantine, drain or reboot nodes/).waitFor();
    await fleet().getByText("P2 · Host and agent service").first().waitFor();
    expect(complaints).toEqual([]);
  });

  it.each(["light", "dark"] as const)(
    "fits a telephone in %s, where a touch says which node it is",
    async (colorScheme) => {
      const narrow = await visit({ viewport: { width: 390, height: 844 }, colorScheme, hasTouch: true });
      await open(narrow.page, "/nodes");
      await narrow.page.getByText(/are unhealthy/).waitFor();
      const overflow = await narrow.page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
      expect(overflow).toBeLessThanOrEqual(0);
      await narrow.page.locator("canvas").tap({ position: { x: 4, y: 28 } });
      await narrow.page.getByRole("button", { name: /^Open sim-/ }).waitFor();
      await keepScreenshot(narrow.page, `narrow-${colorScheme}-with-fleet`);
      expect(narrow.complaints).toEqual([]);
    },
  );

  describe("who asks for an allocation", () => {
    const allocate = async () => {
      await page.goto(`${api.url}/allocations?add=yes`);
      await page.getByRole("heading", { name: "New allocation" }).waitFor();
    };
    const node = () => page.getByRole("dialog").getByRole("combobox", { name: "Node" });

    it("DASH-01 finds any of thousands of nodes by keyboard, and is offered only those that can take it", async () => {
      await allocate();
      await node().click();
      await page.getByText(/^Showing 20 of 1,?9\d\d\. Type to search all\.$/).waitFor();
      await keepScreenshot(page, "node-picker");
      await pick(page.getByRole("dialog"), "Node", "sim-00007");
      await expect.poll(() => node().inputValue()).toBe("sim-00007");
      await node().fill("sim-00401");
      await page.getByText("No node matches “sim-00401”.").waitFor();
      await page.keyboard.press("Escape");
      await expect.poll(() => node().inputValue()).toBe("sim-00007");
      expect(complaints).toEqual([]);
    });

    it("DASH-01 is offered the node that is left after thousands were retired", async () => {
      await sendHeartbeatFrom(await enrollTestNode(api, org.id, { hostname: "rock-1" }));
      await retireFleet(superuser, org.id);
      // Written past the api, which lists nodes by capability from memory. A page that opens before the api has looked again
      // sees thousands, and asks again only after twenty seconds.
      const query = { status: "active", capability: "os_users,own_account" } as const;
      await expect.poll(async () => (await api.operator(org.id)(listNodes, { query })).total).toBe(1);
      await allocate();
      await expect.poll(() => node().inputValue()).toBe("rock-1");
      await node().click();
      await expect.poll(() => page.getByRole("option").allTextContents()).toEqual(["rock-1"]);
      await page.goto(`${api.url}/nodes`);
      await page.getByText("Showing 1 of 1 node").waitFor();
      await page.getByLabel("State", { exact: true }).selectOption("retired");
      await page.getByText("Showing 1–50 of 2,000 retired nodes, newest first").waitFor();
      await keepScreenshot(page, "nodes-retired");
    });
  });
});
