// The next action of a cause on a node's page, and the story of the recovery that follows it.

import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { beforeAll, describe, expect, it } from "vitest";
import { defaultPolicy } from "../../control-plane/src/drift/policy.ts";
import { findUnnoticed, noticeStandings } from "../../control-plane/src/drift/verdicts/find-unnoticed.ts";
import { openSignals, type Signals } from "../../control-plane/src/mechanisms/signals.ts";
import { lacks } from "../../scripts/facilities.mjs";
import {
  addMember,
  createOrg,
  PASSWORD,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { completeRecoveryCheck } from "../../testkit/api/recovery.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

describe.skipIf(lacks("chromium"))("a node that recovers", () => {
  const { visit } = openChromium();
  let api: TestApi;
  let org: TestOrg;
  let node: TestNode;
  let signals: Signals;

  beforeAll(async () => {
    api = await startTestApi();
    signals = await openSignals(openRoles(api.database).system, quiet);
    atEnd(() => signals.stop());
    org = await createOrg(api, "kelp");
    await addMember(api, org, "ada@kelp.example", "owner");
    node = await enrollTestNode(api, org.id, { hostname: "reef-1" });
    await sendHeartbeatFrom(node);
    await classify();
    await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: "fence" } });
    await classify();
  });

  async function classify(): Promise<void> {
    const { system } = openRoles(api.database);
    await findUnnoticed(system, defaultPolicy);
    await noticeStandings(system);
    const { changed } = await classifyWhatIsDue(system, defaultPolicy);
    signals.publish("verdict", changed);
  }

  it("DASH-08 is offered its one next action, says what that does, and shows the whole story afterwards", async () => {
    const { page, complaints } = await visit();
    await page.goto(`${api.url}/nodes/${node.id}`);
    await page.getByLabel("Email").fill("ada@kelp.example");
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();

    const causes = page.getByRole("region", { name: "Causes" });
    await causes.getByText("holdfast node reactivate reef-1").first().waitFor();
    expect(await causes.getByRole("button", { name: "Enroll again" }).count()).toBe(0);
    await causes.getByRole("button", { name: "Reactivate node" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("list", { name: "What it does", exact: true }).waitFor();
    await dialog.getByRole("list", { name: "What it does not do" }).waitFor();
    await keepScreenshot(page, "node-next-action");
    await dialog.getByRole("button", { name: "Reactivate node" }).click();
    await dialog.waitFor({ state: "detached" });

    await classify();
    await causes.getByText("Recovery not verified yet").waitFor();
    await page.getByRole("list", { name: "Layers" }).getByText("recovering").waitFor();
    await keepScreenshot(page, "node-recovering");
    await causes.getByRole("link", { name: /Show the whole story of the incident/ }).click();
    const story = page.getByRole("list", { name: "Story" });
    await story.getByText("Recovery not verified yet").waitFor();

    await completeRecoveryCheck(node);
    await sendHeartbeatFrom(node);
    await classify();
    await page.reload();
    await story.getByText(/Healthy again/).waitFor();
    expect(await story.getByText("Proof", { exact: true }).count()).toBe(5);
    await keepScreenshot(page, "trace");

    await page.goto(`${api.url}/trace/no-such-id`);
    await page.getByText("Trace not found").waitFor();
    expect(complaints).toEqual([]);
  });
});
