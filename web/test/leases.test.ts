// VM hosts and leases in a browser: a host is read, disabled and enabled, and a lease is explained, followed and terminated.

import { addImage } from "@holdfast/contracts/endpoints/images";
import { createLease, getLease } from "@holdfast/contracts/endpoints/leases";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { IMAGE } from "../../testkit/api/leases.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { reportVms } from "../../testkit/api/vm-hosts.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";

const { visit } = openChromium();
let api: TestApi;
let orgId: string;
let node: TestNode;

beforeAll(async () => {
  api = await startTestApi();
  const org = await createOrg(api, "tidewater");
  orgId = org.id;
  await addMember(api, org, "owner@tidewater.example", "owner");
  await addMember(api, org, "member@tidewater.example", "member");
  node = await enrollTestNode(api, org.id, { hostname: "rack-1" });
  await reportVms(node);
  await api.operator(orgId)(addImage, { body: { id: IMAGE.id, sha256: IMAGE.sha256 } });
});

const open = (page: Page, email: string, path: string) => signIn(page, `${api.url}${path}`, email);

describe.skipIf(lacks("chromium"))("hosts and leases", () => {
  it("DASH-05 leads from /ui to hosts with platform, accelerator, capacity and images, which can be disabled", async () => {
    const { page, complaints } = await visit();
    await open(page, "owner@tidewater.example", "/ui");
    await page.getByRole("heading", { name: "Hosts", level: 1 }).waitFor();
    const host = page.getByRole("region", { name: "rack-1" });
    await host.getByText("linux/debian/x64").waitFor();
    await host.getByText("kvm", { exact: true }).waitFor();
    await host.getByText("8 free of 8").waitFor();
    await host.getByText("16 GiB free of 16 GiB").waitFor();
    await host.getByText(IMAGE.id).waitFor();
    await host.getByText("Takes leases").waitFor();
    await keepScreenshot(page, "hosts");
    await host.getByRole("button", { name: "Disable rack-1" }).click();
    await host.getByText("holdfast host enable rack-1").waitFor();
    await host.getByRole("button", { name: "Enable rack-1" }).click();
    await host.getByText("Takes leases").waitFor();
    expect(complaints).toEqual([]);
  });

  it("DASH-05 VM-09 says why a lease waits, shows its timeline as it goes on, and terminates it", async () => {
    const { page, complaints } = await visit();
    const client = api.operator(orgId);
    const waiting = await client(createLease, { body: { image_id: IMAGE.id, arch: "arm64" } });
    await open(page, "owner@tidewater.example", `/leases/${waiting.id}`);
    await page.getByText("It is x64, and the lease needs arm64.").waitFor();
    await keepScreenshot(page, "lease-waiting");
    const placed = await client(createLease, { body: { image_id: IMAGE.id, profile: "tiny" } });
    await page.goto(`${api.url}/leases/${placed.id}`);
    await page.getByRole("list", { name: "Timeline" }).getByText("Placed on rack-1.").waitFor();
    await keepScreenshot(page, "lease-placed");
    await page.getByRole("button", { name: /^Terminate/ }).click();
    await page.getByRole("status").getByText("Terminating").waitFor();
    expect((await client(getLease, { params: { lease_id: placed.id } })).status).toBe("terminating");
    await page.goto(`${api.url}/leases`);
    await page
      .getByRole("button", { name: /: details$/ })
      .first()
      .waitFor();
    await keepScreenshot(page, "leases");
    expect(complaints).toEqual([]);
  });

  it("DASH-05 shows a member hosts and leases, and nothing to change them", async () => {
    const { page } = await visit();
    await open(page, "member@tidewater.example", "/hosts");
    await page.getByRole("region", { name: "rack-1" }).waitFor();
    expect(await page.getByRole("button", { name: /^(Enable|Disable)/ }).count()).toBe(0);
    await page.goto(`${api.url}/leases`);
    await page
      .getByRole("button", { name: /: details$/ })
      .first()
      .waitFor();
    expect(await page.getByRole("button", { name: /^Terminate/ }).count()).toBe(0);
  });
});
