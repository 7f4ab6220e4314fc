// A preflight from the page of a node: hops appear as they are checked, a failed one says whose it is, and after the repair
// the same button ends in Ready.

import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import {
  addMember,
  createOrg,
  PASSWORD,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { probeResult, serveTasks } from "../../testkit/api/preflights.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

describe.skipIf(lacks("chromium"))("a preflight on the page", () => {
  const { visit } = openChromium();
  let api: TestApi;
  let org: TestOrg;
  let node: TestNode;

  beforeAll(async () => {
    api = await startTestApi();
    org = await createOrg(api, "kelp");
    await addMember(api, org, "ada@kelp.example", "owner");
    node = await enrollTestNode(api, org.id, { hostname: "reef-1" });
    await sendHeartbeatFrom(node);
  });

  it("DASH-02 PRE-06 shows hops live, the failed one with its owner, and the last good run", async () => {
    const answers: Record<string, unknown> = {
      "node.noop": { echo: null },
      "diag.network_probe": probeResult([null], ["tcp_timeout"]),
    };
    const agent = serveTasks(node, answers);
    atEnd(() => agent.stop());
    const { page, complaints } = await visit();
    await page.goto(`${api.url}/nodes/${node.id}`);
    await page.getByLabel("Email").fill("ada@kelp.example");
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    const card = page.getByRole("region", { name: "Preflight" });
    await card.getByText("never ready").waitFor();
    await card.getByRole("button", { name: "Run preflight" }).click();
    const hops = card.getByRole("list", { name: "Hops of the last preflight" }).getByRole("listitem");
    await hops.filter({ hasText: "node_heartbeat" }).getByText("Passed").waitFor();
    await hops.filter({ hasText: "node_terminal_reachability" }).getByText("Failed").waitFor({ timeout: 60_000 });
    await card.getByText("Owner: Environment profile.").waitFor();
    await keepScreenshot(page, "preflight-failed");

    answers["diag.network_probe"] = probeResult([null], [null]);
    await card.getByRole("button", { name: "Run preflight" }).click();
    await card.getByRole("status").getByText("Ready").waitFor({ timeout: 60_000 });
    await card.getByText("last ready").waitFor();
    await keepScreenshot(page, "preflight-ready");
    expect(complaints).toEqual([]);
  });
});
