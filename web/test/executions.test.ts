// Agents and executions in a browser: an agent is paired, its steps are watched, cancelled and explained, and it is revoked.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { connectTestAgent, stepOf } from "../../testkit/api/agents.ts";
import { addMember, createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { enrollGateway, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";

const { visit } = openChromium();
let api: TestApi;
let gateway: TestGateway;
let orgId: string;

beforeAll(async () => {
  api = await startTestApi({
    env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_EXECUTION_WS_URL: "ws://127.0.0.1:3002/ws" },
  });
  const org = await createOrg(api, "tidewater");
  orgId = org.id;
  await addMember(api, org, "owner@tidewater.example", "owner");
  await addMember(api, org, "member@tidewater.example", "member");
  gateway = await enrollGateway(api);
});

const open = (page: Page, email: string, path = "/agents") => signIn(page, `${api.url}${path}`, email);

describe.skipIf(lacks("chromium"))("agents and executions", () => {
  it("DASH-06 EXEC-08 pairs an agent with a line to copy, watches its step, and revokes it", async () => {
    const { page, complaints } = await visit();
    await open(page, "owner@tidewater.example");
    await page.getByText("No agents yet").waitFor();
    await page.getByRole("button", { name: "Pair an agent" }).first().click();
    await page.getByLabel("Tags").fill("east, group:alpha");
    await page.getByRole("button", { name: "Create command" }).click();
    const command = await page
      .getByRole("dialog")
      .getByText(/holdfast agent connect/)
      .first()
      .textContent();
    expect(command).toContain(`--pairing-token ${orgId}.hfx_`);
    expect(command).toContain("--tags east,group:alpha");
    await page.getByText("Waiting for an agent").waitFor();
    await keepScreenshot(page, "agents-pair");

    const agent = await connectTestAgent(api, gateway, { orgId, name: "edge-1", tags: ["east", "group:alpha"] });
    await page.getByText("edge-1 is paired and online").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    const row = page.getByRole("table", { name: "Agents" }).getByRole("row").nth(1);
    await row.getByText("0 of 10").waitFor();

    const verdict = await agent.request({ selectorTag: "group:alpha" });
    if (verdict.state !== "assigned") throw new Error(JSON.stringify(verdict));
    const one = { request_id: verdict.request_id, generation: 1 };
    await row.getByText("1 of 10").waitFor();
    await keepScreenshot(page, "agents");
    await agent.report({ type: "accepted", ...one });
    await page.getByRole("main").getByRole("link", { name: "Executions" }).click();
    await page.getByRole("button", { name: /build.*Running/ }).click();
    await page.getByRole("link", { name: "Open execution" }).click();
    await agent.report({ type: "log", ...one, seq: 1, stream: "stdout", text: "compiling the reef\n" });
    await page.getByText("compiling the reef").waitFor();
    await keepScreenshot(page, "execution-running");
    const output = { backend: "host", exitCode: 0, timedOut: false, stdout: "compiling the reef\n", stderr: "" };
    const result = {
      status: "succeeded" as const,
      output: { ...output, stdoutTruncated: false, stderrTruncated: false },
    };
    await agent.report({ type: "result", ...one, result });
    await page.getByRole("status").getByText("Succeeded").waitFor();
    await page.getByText("exitCode").waitFor();
    await keepScreenshot(page, "execution-ended");

    await page.goto(`${api.url}/agents`);
    await page.getByRole("button", { name: "Actions for agent edge-1" }).click();
    await page.getByRole("menuitem", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke agent" }).click();
    await page.getByText("No agents yet").waitFor();
    await page.getByRole("button", { name: "Show 1 revoked agent" }).click();
    await page.getByText("Revoked", { exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  it("EXEC-03 DASH-06 says why a request waits, and cancels it", async () => {
    const agent = await connectTestAgent(api, gateway, { orgId, name: "west-1", tags: ["west"] });
    const verdict = await agent.request({ selectorTag: "north", waitMs: 600_000, nodeId: "deploy" });
    expect(verdict.state).toBe("pending");
    const { page, complaints } = await visit();
    await open(page, "owner@tidewater.example", "/executions?status=pending");
    await page.getByRole("button", { name: /^deploy/ }).click();
    await page.getByRole("link", { name: "Open execution" }).click();
    await page.getByRole("heading", { name: "Waiting for an agent" }).waitFor();
    const reasons = page.getByRole("list", { name: "Agents that were not chosen" });
    await reasons
      .getByRole("listitem")
      .filter({ hasText: "west-1" })
      .getByText(/tag.*north/i)
      .waitFor();
    await keepScreenshot(page, "execution-pending");
    await page.getByRole("button", { name: /^Cancel/ }).click();
    await page.getByRole("status").getByText("Cancelled").waitFor();
    expect(complaints).toEqual([]);
  });

  it("DASH-06 shows a member agents and executions, and nothing to change them", async () => {
    const agent = await connectTestAgent(api, gateway, { orgId, name: "south-1" });
    await agent.request(stepOf(orgId, { nodeId: "lint" }));
    const { page } = await visit();
    await open(page, "member@tidewater.example");
    await page.getByText("south-1").waitFor();
    expect(await page.getByRole("button", { name: "Pair an agent" }).count()).toBe(0);
    await page.getByRole("button", { name: "Actions for agent south-1" }).click();
    expect(await page.getByRole("menuitem", { name: "Revoke" }).count()).toBe(0);
    await page.goto(`${api.url}/executions`);
    await page.getByRole("button", { name: /^lint/ }).waitFor();
    expect(await page.getByRole("button", { name: /^Cancel/ }).count()).toBe(0);
  });
});
