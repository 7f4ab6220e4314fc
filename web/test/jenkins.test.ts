// Jenkins controllers in a browser: the list says what to do about one that cannot be used, and a controller's page leads to leases.

import { addImage } from "@holdfast/contracts/endpoints/images";
import { addJenkinsController } from "@holdfast/contracts/endpoints/jenkins";
import { setLeaseLabel } from "@holdfast/contracts/endpoints/leases";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { addMember, createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { IMAGE } from "../../testkit/api/leases.ts";
import { keepScreenshot, openChromium } from "../../testkit/browser/browser.ts";
import { signIn } from "../../testkit/browser/sign-in.ts";
import { startController } from "../../testkit/jenkins/controller.ts";

const { visit } = openChromium();
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi({
    env: { HOLDFAST_JENKINS_ALLOW_PRIVATE: "127.0.0.1", HOLDFAST_JENKINS_POLL_SECONDS: "1" },
  });
  const org = await createOrg(api, "tidewater");
  await addMember(api, org, "owner@tidewater.example", "owner");
  const client = api.operator(org.id);
  await client(addImage, { body: IMAGE });
  await client(setLeaseLabel, { body: { label: "tiny", image_id: IMAGE.id, profile: "tiny" } });
  const jenkins = await startController();
  jenkins.enqueue("compile", "linux");
  jenkins.enqueue("sign", "windows");
  const { url, user, token } = jenkins;
  const labels = [{ jenkins_labels: ["linux"], lease_label: "tiny" }];
  await client(addJenkinsController, { body: { name: "ci", url, user, api_token: token, labels } });
  await client(addJenkinsController, { body: { name: "old", url, user, api_token: "expired", labels } });
});

describe.skipIf(lacks("chromium"))("Jenkins controllers", () => {
  it("DASH-05 VM-06 VM-09 show state, last poll and what to do, and lead to queue, builds and leases", async () => {
    const { page, complaints } = await visit();
    await signIn(page, `${api.url}/jenkins`, "owner@tidewater.example");
    await page.getByRole("heading", { name: "Jenkins", level: 1 }).waitFor();
    await page.getByRole("region", { name: "old" }).getByText("Access refused").waitFor();
    await page.getByRole("region", { name: "old" }).getByText("Create a new API token").waitFor();
    await page.getByRole("region", { name: "ci" }).getByText("Working").waitFor();
    await keepScreenshot(page, "jenkins");
    await page.getByRole("link", { name: "Queue and builds of ci" }).click();
    await page.getByRole("table", { name: "Queue" }).getByText("Not served").waitFor();
    await keepScreenshot(page, "jenkins-controller");
    await page.getByRole("button", { name: "Disable ci" }).click();
    await page.getByRole("status").getByText("Disabled").waitFor();
    await page.getByRole("link", { name: /lease of compile$/ }).click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    expect(complaints).toEqual([]);
  });
});
