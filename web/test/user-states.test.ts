// What a tenant sees in a browser when the node behind an allocation is in trouble: plain words at once, and nothing of
// the other tenant on it.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { defaultPolicy } from "../../control-plane/src/drift/policy.ts";
import { findUnnoticed, noticeStandings } from "../../control-plane/src/drift/verdicts/find-unnoticed.ts";
import { openSignals, type Signals } from "../../control-plane/src/mechanisms/signals.ts";
import { lacks } from "../../scripts/facilities.mjs";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { completeRecoveryCheck } from "../../testkit/api/recovery.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

describe.skipIf(lacks("chromium"))("two tenants on one node", () => {
  const { visit } = openChromium();
  let api: TestApi;
  let kelp: TestOrg;
  let node: TestNode;
  let signals: Signals;
  let ofBob: string;
  let canaries: string[];

  beforeAll(async () => {
    api = await startTestApi();
    const { superuser, system } = openRoles(api.database);
    signals = await openSignals(system, quiet);
    atEnd(() => signals.stop());
    kelp = await createOrg(api, "kelp");
    const ada = await addMember(api, kelp, "ada@kelp.example", "member");
    const bob = await addMember(api, kelp, "bob@kelp.example", "member");
    node = await enrollTestNode(api, kelp.id, { hostname: "reef-1" });
    const finding = { reason: "disk_full", detail: "canary-finding" };
    await sendHeartbeatFrom(node, { findings: [finding] });
    const allocate = async (person: Browser, username: string) =>
      (await person.client(kelp.id)(createAllocation, { body: { node_id: node.id, username } })).id;
    const ofAda = await allocate(ada, "canary-user");
    ofBob = await allocate(bob, "bob");
    await superuser`UPDATE allocations SET status = 'active', active_at = now()`;
    canaries = [ofAda, "canary-user", "canary-finding", "canary-quarantine", "disk_full"];
  });

  async function classify(): Promise<void> {
    const { system } = openRoles(api.database);
    await findUnnoticed(system, defaultPolicy);
    await noticeStandings(system);
    const { allocations } = await classifyWhatIsDue(system, defaultPolicy);
    signals.publish("allocation", allocations);
  }

  const open = (page: Page, path: string) => signIn(page, `${api.url}${path}`, "bob@kelp.example");

  it("DASH-07 DRIFT-10 an open page changes with the node, in plain words and without a trace of the other", async () => {
    const { page, complaints } = await visit();
    const status = page.getByRole("status");
    await open(page, `/allocations/${ofBob}`);
    await status.getByText("Ready").waitFor();
    const reason = "canary-quarantine";
    await api.operator(kelp.id)(changeNode, { params: { node_id: node.id }, body: { change: "fence", reason } });
    await classify();
    const { title, meaning } = userStateTitles.operator_action_required;
    await status.getByText(title).waitFor();
    await page.getByText(meaning).first().waitFor();
    expect(await status.getByText("Ready").count(), "not shown as well").toBe(0);
    await page.getByRole("list", { name: "Notifications" }).getByText(title).waitFor();
    await keepScreenshot(page, "allocation-waiting-for-operator");

    const texts: string[] = [await page.content()];
    for (const path of [
      "/",
      "/nodes",
      `/nodes/${node.id}`,
      "/allocations",
      "/tasks",
      `/tasks?node_id=${node.id}`,
    ]) {
      await page.goto(`${api.url}${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      texts.push(await page.content());
    }
    await keepScreenshot(page, "node-of-tenant");
    for (const text of texts) for (const canary of canaries) expect(text).not.toContain(canary);

    await page.goto(`${api.url}/allocations/${ofBob}`);
    await status.getByText(title).waitFor();
    await api.operator(kelp.id)(changeNode, { params: { node_id: node.id }, body: { change: "reactivate" } });
    // Its disk is in order again, too.
    await sendHeartbeatFrom(node);
    await classify();
    await status.getByText(userStateTitles.recovering.title).waitFor();
    await completeRecoveryCheck(node);
    await expect
      .poll(async () => {
        await sendHeartbeatFrom(node);
        await classify();
        return status.getByText("Ready").count();
      })
      .toBe(1);
    expect(complaints).toEqual([]);
  });
});
