// What an operator sees of background jobs in a browser.

import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, redeem, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { violationsOf } from "../../testkit/browser/axe.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { openRoles } from "../../testkit/database/database.ts";

const { visit } = openChromium();
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

async function openAs(email: string, path: string) {
  const visited = await visit();
  const { page } = visited;
  await signIn(page, `${api.url}${path}`, email);
  return visited;
}

const report = {
  ...{ runs_in: "one worker", every_seconds: 60, turns: 4, overruns: 2, failures: 1 },
  ...{ started_at: new Date().toISOString(), duration_ms: 340, result: null, failing: true },
  ...{
    failed_at: new Date(Date.now() - 240_000).toISOString(),
    failure: "canceling statement due to statement timeout",
  },
};

describe.skipIf(lacks("chromium"))("background jobs", () => {
  beforeAll(async () => {
    const link = await api.operator()(createAdminLink, { body: {} });
    await redeem(api, link.url, { email: "root@example.com", name: "Root" });
    const org = await createOrg(api, "working");
    await addMember(api, org, "member@working.example", "member");
    const { superuser } = openRoles(api.database);
    await superuser`
      INSERT INTO background_jobs (name, taken_at, turns, report)
      VALUES ('remove-old-tasks', now(), 4, ${JSON.stringify(report)}::text::jsonb)`;
  });

  it("OPS-02 are linked from the overview, with the failing one first and its failure", async () => {
    const { page, complaints } = await openAs("root@example.com", "/");
    await page.getByText(/^1 of \d+ failing$/).waitFor();
    await page.getByRole("link", { name: /background jobs/ }).click();
    await page.getByRole("heading", { level: 1, name: "Background jobs" }).waitFor();
    const first = page.getByRole("row").nth(1);
    await first.getByText("Failing").waitFor();
    const text = await first.textContent();
    expect(text).toContain("Remove old tasks");
    expect(text).toContain("canceling statement due to statement timeout (4 minutes ago)");
    expect(text).toContain("340 ms");
    expect(text).toContain("1 min");
    await page.getByText("Refresh fleets").waitFor();
    await keepScreenshot(page, "background-jobs");
    expect(await violationsOf(page, "background jobs")).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("SEC-01 are not shown to others", async () => {
    const { page } = await openAs("member@working.example", "/platform/background-jobs");
    await page.getByText("Only platform operators can see background jobs").waitFor();
    expect(await page.getByRole("table").count()).toBe(0);
  });
});
