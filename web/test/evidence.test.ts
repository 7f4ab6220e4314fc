// An evidence bundle from the page, and the way from an error to its log line.

import { readFileSync } from "node:fs";
import { listEvidenceKeys } from "@holdfast/contracts/endpoints/evidence";
import { updateNode } from "@holdfast/contracts/endpoints/nodes";
import { openLogStore } from "@holdfast/service/log-store/log-store";
import { beforeAll, describe, expect, it } from "vitest";
import { replayBundle } from "../../control-plane/src/evidence-bundles/archive/replay.ts";
import { verifyBundle } from "../../control-plane/src/evidence-bundles/archive/verify.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import {
  addMember,
  createOrg,
  PASSWORD,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";

describe.skipIf(lacks("chromium"))("evidence on pages", () => {
  const { visit } = openChromium();
  let api: TestApi;
  let org: TestOrg;
  let node: TestNode;

  beforeAll(async () => {
    const logs = openLogStore({
      directory: scratchDirectory(),
      mostBytes: 8 * 1024 * 1024,
      mostAgeMs: 86_400_000,
    });
    api = await startTestApi({ logs });
    org = await createOrg(api, "kelp");
    await addMember(api, org, "ada@kelp.example", "owner");
    node = await enrollTestNode(api, org.id, { hostname: "reef-1" });
    await sendHeartbeatFrom(node);
    const taken = await enrollTestNode(api, org.id, { hostname: "reef-2" });
    await api.operator(org.id)(updateNode, { params: { node_id: taken.id }, body: { name: "taken-name" } });
  });

  async function open() {
    const visited = await visit();
    await visited.page.goto(`${api.url}/nodes/${node.id}`);
    await visited.page.getByLabel("Email").fill("ada@kelp.example");
    await visited.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await visited.page.getByRole("button", { name: "Sign in" }).click();
    return visited;
  }

  it("DASH-03 one click saves a bundle that is valid and replayable", async () => {
    const { page, complaints } = await open();
    const button = page.getByRole("button", { name: "Evidence bundle" });
    await button.waitFor();
    const downloading = page.waitForEvent("download");
    await button.click();
    const download = await downloading;
    expect(download.suggestedFilename()).toMatch(
      new RegExp(`^evidence-node-${node.id}-\\d{8}T\\d{6}Z\\.tar\\.gz$`),
    );
    const { keys } = await api.operator()(listEvidenceKeys, {});
    const bundle = readFileSync(await download.path());
    const { problems, files } = verifyBundle(bundle, new Set(keys.map(({ kid }) => kid)));
    expect(problems).toEqual([]);
    expect(replayBundle(files).every(({ same }) => same)).toBe(true);
    await page.getByText(/^Saved evidence-node-/).waitFor();
    await keepScreenshot(page, "node-evidence-bundle");
    expect(complaints).toEqual([]);
  });

  it("DASH-08 the correlation id of an error leads to its log line", async () => {
    const { page } = await open();
    await page.getByRole("button", { name: "Actions for node reef-1" }).click();
    await page.getByRole("menuitem", { name: "Rename node" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("taken-name");
    await dialog.getByRole("button", { name: /Rename|Save/ }).click();
    const error = dialog.getByRole("alert");
    await error.getByText("Correlation id").waitFor();
    await keepScreenshot(page, "error-with-story");
    await error.getByRole("link", { name: "Show the whole story" }).click();
    const story = page.getByRole("list", { name: "Story" });
    await story.getByText("info: request").waitFor();
    await story.getByText(/status=409/).waitFor();
    await story
      .getByText(/node\.update/)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Logs only" }).click();
    expect(await story.getByRole("listitem").count()).toBe(1);
    await keepScreenshot(page, "trace-with-logs");
    await page.getByRole("button", { name: "Evidence bundle" }).waitFor();
  });
});
