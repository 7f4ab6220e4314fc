// The next action of a cause on a node's page, and the story of the recovery that follows it.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { listBundles } from "@holdfast/contracts/endpoints/bundles";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { beforeAll, describe, expect, it } from "vitest";
import { defaultPolicy } from "../../control-plane/src/drift/policy.ts";
import { findUnnoticed, noticeStandings } from "../../control-plane/src/drift/verdicts/find-unnoticed.ts";
import { openSignals, type Signals } from "../../control-plane/src/mechanisms/signals.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, heartbeatOf, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { completeRecoveryCheck } from "../../testkit/api/recovery.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
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

  async function open(nodeId: string) {
    const visited = await visit();
    await signIn(visited.page, `${api.url}/nodes/${nodeId}`, "ada@kelp.example");
    return visited;
  }

  it("DASH-08 is offered its one next action, says what that does, and shows the whole story afterwards", async () => {
    const { page, complaints } = await open(node.id);
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

  it("ID-10 DASH-08 shows both machines of a cloned identity, and lets one of them be kept", async () => {
    const cloned = await enrollTestNode(api, org.id, { hostname: "reef-2" });
    await alternate(cloned, [randomUUID(), randomUUID()]);
    await classify();
    const { page, complaints } = await open(cloned.id);
    const machines = page.getByRole("table", { name: "Machines with this identity" });
    await machines
      .getByRole("button", { name: /^Keep / })
      .nth(1)
      .waitFor();
    await machines.getByText("Probably the original").waitFor();
    await keepScreenshot(page, "node-clone");
    await machines
      .getByRole("row")
      .filter({ hasText: "Probably the original" })
      .getByRole("button", { name: /^Keep / })
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/reimage it before it is used again/).waitFor();
    await keepScreenshot(page, "node-clone-keep");
    await dialog.getByRole("button", { name: "Revoke both and keep it" }).click();
    await page.getByRole("dialog", { name: "New identity for reef-2" }).getByText("Join command").waitFor();
    const { body } = await sendHeartbeatFrom(cloned);
    expect(body["code"]).toBe("identity_revoked");
    expect(complaints).toEqual([]);
  });

  it("DASH-08 creates a recovery bundle, shows once how it is applied, and revokes it", async () => {
    const { page, complaints } = await open(node.id);
    await page.getByRole("button", { name: "Actions for node reef-1" }).click();
    await page.getByRole("menuitem", { name: "Recovery bundle" }).click();
    const asking = page.getByRole("dialog", { name: "Create recovery bundle: reef-1" });
    await asking.getByRole("list", { name: "What it does not do" }).waitFor();
    await asking.getByRole("button", { name: "Create recovery bundle" }).click();
    const dialog = page.getByRole("dialog", { name: "Recovery bundle for reef-1" });
    const command = dialog.getByLabel("Command with the bundle", { exact: true });
    expect(await command.inputValue()).toMatch(/^holdfast agent bundle apply --line \S+$/);
    await keepScreenshot(page, "node-bundle");
    const saving = page.waitForEvent("download");
    await dialog.getByRole("button", { name: "Save it as a file" }).click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe("reef-1.bundle-1.json");
    const content = JSON.parse(readFileSync(await saved.path(), "utf8")) as unknown;
    expect(RecoveryBundle.safeParse(content).error).toBeUndefined();
    await dialog.getByRole("button", { name: "Done" }).click();

    await page.getByRole("link", { name: "Nodes", exact: true }).first().click();
    const bundles = page.getByRole("table", { name: "Open recovery bundles" });
    await bundles.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke bundle" }).click();
    await bundles.waitFor({ state: "detached" });
    const { items } = await api.operator(org.id)(listBundles, { query: {} });
    expect(items).toMatchObject([{ node_id: node.id, state: "revoked" }]);
    expect(complaints).toEqual([]);
  });
});

/** Heartbeats of machines that have the same identity, and each its own memory. */
async function alternate(node: TestNode, machines: readonly string[]): Promise<void> {
  const last = new Map<string, unknown>();
  const beat = async (machine: string): Promise<void> => {
    const { body } = await node.client.ask({
      ...{
        method: "POST",
        path: node.path("heartbeat"),
        body: heartbeatOf({ after: Number(last.get(machine) ?? 0) }),
      },
      headers: { [INSTANCE_HEADER]: machine, [BOOT_HEADER]: `boot-${machine}` },
    });
    expect(body).toMatchObject({ number: expect.any(Number) });
    last.set(machine, body["number"]);
    if (body["again"]) await beat(machine);
  };
  for (let turn = 0; turn < 4; turn += 1) for (const machine of machines) await beat(machine);
}
