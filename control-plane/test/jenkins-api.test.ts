// Jenkins controllers over HTTP: what is refused says what to do, and no answer, audit event or log line has an API token.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { addImage } from "@holdfast/contracts/endpoints/images";
import {
  addJenkinsController,
  checkJenkinsController,
  disableJenkinsController,
  enableJenkinsController,
  getJenkinsController,
  listJenkinsControllers,
  removeJenkinsController,
  setJenkinsToken,
} from "@holdfast/contracts/endpoints/jenkins";
import { listLeases, setLeaseLabel } from "@holdfast/contracts/endpoints/leases";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { createOrg, startTestApi, type TestApi, tokenFor } from "../../testkit/api/api.ts";
import { IMAGE } from "../../testkit/api/leases.ts";
import { type StandInController, startController } from "../../testkit/jenkins/controller.ts";

let api: TestApi;
let jenkins: StandInController;
let client: ReturnType<TestApi["operator"]>;
let org: Awaited<ReturnType<typeof createOrg>>;
const A_WHILE = { timeout: 60_000 };

beforeAll(async () => {
  api = await startTestApi({
    env: { HOLDFAST_JENKINS_ALLOW_PRIVATE: "127.0.0.1", HOLDFAST_JENKINS_POLL_SECONDS: "1" },
  });
  org = await createOrg(api, "tidewater");
  client = api.operator(org.id);
  await client(addImage, { body: IMAGE });
  await client(setLeaseLabel, { body: { label: "tiny", image_id: IMAGE.id, profile: "tiny" } });
  jenkins = await startController();
});

const body = (name: string, changes: object = {}) => ({
  ...{ name, url: jenkins.url.slice(0, -1), user: jenkins.user, api_token: jenkins.token },
  labels: [{ jenkins_labels: ["linux"], lease_label: "tiny" }],
  ...changes,
});

describe("a controller", () => {
  it("VM-06 is added, checked, polled, disabled and removed, and its token stays inside", async () => {
    jenkins.enqueue("compile", "linux");
    jenkins.enqueue("sign", "windows");
    const added = await client(addJenkinsController, { body: body("ci") });
    expect(added).toMatchObject({
      name: "ci",
      url: jenkins.url,
      user: "holdfast",
      enabled: true,
      max_leases: 20,
      burst: 5,
    });
    const params = { controller_id: added.id };
    const show = () => client(getJenkinsController, { params });
    await vi.waitUntil(async () => (await show()).state === "working", A_WHILE);
    const shown = await show();
    expect(shown).toMatchObject({ state: "working", problem: null, builds: 1, queued: 2 });
    expect(shown.queue.map(({ verdict }) => verdict).sort()).toContain("not_served");
    expect(shown.recent).toMatchObject([
      { task: "compile", status: "launching", lease_status: "requested", label: "linux" },
    ]);
    expect(await client(checkJenkinsController, { params })).toMatchObject({
      usable: true,
      version: "2.528.1",
      queued: 2,
      nodes: 2,
    });

    await expect(client(removeJenkinsController, { params })).rejects.toMatchObject({
      envelope: { code: "jenkins_controller_in_use" },
    });
    expect(await client(disableJenkinsController, { params })).toMatchObject({
      enabled: false,
      state: "disabled",
    });
    expect(await client(enableJenkinsController, { params })).toMatchObject({ enabled: true });
    await client(removeJenkinsController, { params, query: { force: "true" } });
    expect((await client(listJenkinsControllers, {})).items).toEqual([]);
    const { items: leases } = await client(listLeases, {});
    expect(leases).toMatchObject([{ status: "terminated", label: "tiny", created_by: "jenkins" }]);
    const audit = await client(listAudit, { query: { limit: 200 } });
    const actions = audit.items.map(({ action }) => action).filter((action) => action.startsWith("jenkins_"));
    expect(actions).toEqual(
      expect.arrayContaining(["jenkins_controller.add", "jenkins_controller.remove", "jenkins_build.claim"]),
    );
    for (const text of [JSON.stringify(shown), JSON.stringify(audit), JSON.stringify(added), api.logged()]) {
      expect(text).not.toContain(jenkins.token);
      expect(text).not.toContain(Buffer.from(`${jenkins.user}:${jenkins.token}`).toString("base64"));
    }
  });

  it("VM-09 whose token is wrong says so, and how to replace it; with the right one it works at once", async () => {
    const added = await client(addJenkinsController, { body: body("wrong", { api_token: "not the token" }) });
    const params = { controller_id: added.id };
    await vi.waitUntil(async () => (await client(getJenkinsController, { params })).state === "refused", A_WHILE);
    const { problem } = await client(getJenkinsController, { params });
    expect(problem).toMatchObject({
      code: "jenkins_unauthorized",
      next_step: expect.stringContaining("holdfast jenkins set-token wrong"),
    });
    expect(await client(checkJenkinsController, { params })).toMatchObject({
      usable: false,
      problem: { code: "jenkins_unauthorized" },
    });
    const replaced = await client(setJenkinsToken, { params, body: { api_token: jenkins.token } });
    expect(replaced).toMatchObject({ name: "wrong", problem: null });
    await vi.waitUntil(async () => (await client(getJenkinsController, { params })).state === "working", A_WHILE);
    expect(await client(checkJenkinsController, { params })).toMatchObject({ usable: true });
    const audit = await client(listAudit, { query: { limit: 50 } });
    expect(audit.items.map(({ action }) => action)).toContain("jenkins_controller.set_token");
    for (const text of [JSON.stringify(replaced), JSON.stringify(audit), api.logged()])
      expect(text).not.toContain(jenkins.token);
    await client(removeJenkinsController, { params });
  });

  it.for([
    [{ url: "ftp://ci.example.com" }, "jenkins_address_refused"],
    [{ url: "https://user:secret@127.0.0.1/" }, "jenkins_address_refused"],
    [{ url: "http://127.0.0.2:8080/" }, "jenkins_address_refused"],
    [{ url: "http://169.254.169.254/latest/" }, "jenkins_address_refused"],
    [{ labels: [{ jenkins_labels: ["linux"], lease_label: "unknown" }] }, "lease_label_unknown"],
    [{ labels: [{ jenkins_labels: ["two words"], lease_label: "tiny" }] }, "invalid_request"],
  ] as const)("SEC-04 VM-06 is refused with %j: %s", async ([changes, code]) => {
    await expect(client(addJenkinsController, { body: body("other", changes) })).rejects.toMatchObject({
      envelope: { code },
    });
  });

  it("SEC-01 VM-06 of another organization looks like an unknown one, and members only read", async () => {
    const added = await client(addJenkinsController, { body: body("own") });
    await expect(client(addJenkinsController, { body: body("own") })).rejects.toMatchObject({
      envelope: { code: "name_taken" },
    });
    const params = { controller_id: added.id };
    const stranger = api.operator((await createOrg(api, "elsewhere")).id);
    for (const endpoint of [
      getJenkinsController,
      checkJenkinsController,
      disableJenkinsController,
      removeJenkinsController,
    ])
      await expect(stranger(endpoint as typeof getJenkinsController, { params })).rejects.toMatchObject({
        envelope: { code: "not_found" },
      });
    const member = api.as(await tokenFor(api, org, "member"), org.id);
    expect((await member(listJenkinsControllers, {})).items).toHaveLength(1);
    await expect(member(disableJenkinsController, { params })).rejects.toMatchObject({
      envelope: { code: "forbidden" },
    });
    await client(removeJenkinsController, { params, query: { force: "true" } });
  });
});
