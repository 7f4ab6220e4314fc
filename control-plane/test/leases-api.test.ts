// Hosts, images and leases over HTTP: what is refused says which field, what is allowed and what to do.

import { cleanHost, getHost, listHosts, updateHost } from "@holdfast/contracts/endpoints/hosts";
import { addImage, listImages, retireImage } from "@holdfast/contracts/endpoints/images";
import {
  createLease,
  explainLease,
  getLease,
  listLeases,
  readLeaseOutput,
  removeLeaseLabel,
  runLeaseCommand,
  setLeaseLabel,
  startLeaseWork,
  terminateLease,
} from "@holdfast/contracts/endpoints/leases";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { createOrg, startTestApi, type TestApi, tokenFor } from "../../testkit/api/api.ts";
import { IMAGE } from "../../testkit/api/leases.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { reportVms } from "../../testkit/api/vm-hosts.ts";

let api: TestApi;
let node: TestNode;
let client: ReturnType<TestApi["operator"]>;
let orgId: string;

beforeAll(async () => {
  api = await startTestApi();
  const org = await createOrg(api, "tidewater");
  orgId = org.id;
  client = api.operator(org.id);
  node = await enrollTestNode(api, org.id, { hostname: "rack-1" });
  await reportVms(node);
  await vi.waitUntil(async () => (await client(listHosts, {})).items.length > 0, { timeout: 60_000 });
});

describe("hosts", () => {
  it("DASH-05 VM-02 have platform, accelerator, capacity and what is free", async () => {
    const host = await client(getHost, { params: { host_id: node.id } });
    expect(host).toMatchObject({
      ...{ name: "rack-1", platform: "linux/debian/x64", accelerator: "kvm", enabled: true, schedulable: true },
      ...{ cpu_free: 8, ram_free_mb: 16_384, images: [{ id: IMAGE.id, in_catalogue: false }] },
    });
  });

  it("VM-02 VM-09 that are disabled say how to enable them", async () => {
    const params = { host_id: node.id };
    expect(await client(updateHost, { params, body: { enabled: false } })).toMatchObject({
      ...{ enabled: false, schedulable: false },
      not_schedulable: "The host is disabled (enabled=false). Run `holdfast host enable rack-1`.",
    });
    expect(await client(updateHost, { params, body: { enabled: true } })).toMatchObject({ schedulable: true });
  });

  it("VM-05 are cleaned by a task that compares VMs only if it removes nothing", async () => {
    const params = { host_id: node.id };
    const paramsOf = async (taskId: string) => {
      const { getTask } = await import("@holdfast/contracts/endpoints/tasks");
      return (await client(getTask, { params: { task_id: taskId } })).params;
    };
    const dry = await client(cleanHost, { params, body: { dry_run: true } });
    expect(await paramsOf(dry.task_id)).toEqual({ expected: [], remove: false });
    const real = await client(cleanHost, { params, body: {} });
    expect(await paramsOf(real.task_id)).toEqual({ expected: null, remove: true });
  });
});

describe("images", () => {
  it("VM-03 are added with the digest that hosts report, keep it, and are retired when nothing uses them", async () => {
    await expect(client(addImage, { body: { id: "no-such" } })).rejects.toMatchObject({
      envelope: { code: "image_digest_unknown" },
    });
    expect(await client(addImage, { body: { id: IMAGE.id } })).toMatchObject({
      sha256: IMAGE.sha256,
      hosts: [{ state: "ready" }],
    });
    const changed = { id: IMAGE.id, sha256: "cd".repeat(32) };
    await expect(client(addImage, { body: changed })).rejects.toMatchObject({
      envelope: { code: "image_exists" },
    });
    const body = { label: "linux", image_id: IMAGE.id, profile: "tiny" as const };
    await client(setLeaseLabel, { body });
    await expect(client(retireImage, { params: { image_id: IMAGE.id } })).rejects.toMatchObject({
      envelope: { code: "image_in_use", details: { labels: ["linux"] } },
    });
    await client(removeLeaseLabel, { params: { label: "linux" } });
    expect(await client(retireImage, { params: { image_id: IMAGE.id } })).toMatchObject({
      retired_at: expect.any(String),
    });
    await expect(client(createLease, { body: { image_id: IMAGE.id } })).rejects.toMatchObject({
      envelope: { code: "image_retired" },
    });
    await client(addImage, { body: { id: IMAGE.id } });
    expect((await client(listImages, {})).items).toMatchObject([{ id: IMAGE.id, retired_at: null }]);
  });
});

describe("leases", () => {
  it("VM-04 name what is missing in a request", async () => {
    await expect(client(createLease, { body: {} })).rejects.toMatchObject({
      envelope: { code: "lease_image_required" },
    });
    await expect(client(createLease, { body: { label: "no" } })).rejects.toMatchObject({
      envelope: { code: "lease_label_unknown" },
    });
    await expect(client(createLease, { body: { image_id: "no-such" } })).rejects.toMatchObject({
      envelope: { code: "image_unknown" },
    });
    await expect(client(createLease, { body: { image_id: "../etc" } })).rejects.toMatchObject({
      envelope: { code: "invalid_request" },
    });
  });

  it("VM-04 are placed without being asked again, explained, and terminated", async () => {
    const { id } = await client(createLease, { body: { image_id: IMAGE.id, profile: "tiny" } });
    let lease = await client(getLease, { params: { lease_id: id } });
    while (lease.status === "requested") {
      const query = { wait_seconds: 30, revision: lease.revision };
      lease = await client(getLease, { params: { lease_id: id }, query });
    }
    expect(lease).toMatchObject({ status: "provisioning", host_name: "rack-1", vcpus: 1, memory_mib: 256 });
    expect(await client(explainLease, { params: { lease_id: id } })).toMatchObject({
      ...{ chosen: { name: "rack-1", message: "rack-1 has the most memory left." }, not_chosen: [] },
    });
    const work = { params: { lease_id: id }, body: { work: "build 7" } };
    await expect(client(startLeaseWork, work)).rejects.toMatchObject({
      envelope: { code: "lease_not_connected" },
    });
    const command = { command_id: id, command: ["true"] };
    await expect(client(runLeaseCommand, { params: { lease_id: id }, body: command })).rejects.toMatchObject({
      envelope: { code: "lease_not_connected" },
    });
    const output = { params: { lease_id: id }, query: { command_id: id } };
    await expect(client(readLeaseOutput, output)).rejects.toMatchObject({
      envelope: { code: "lease_not_connected" },
    });
    expect(await client(terminateLease, { params: { lease_id: id } })).toMatchObject({ status: "terminating" });
    expect((await client(listLeases, { query: { live: "true" } })).items).toMatchObject([{ id }]);
  });

  it("VM-09 that wait say for each host why", async () => {
    const { id } = await client(createLease, { body: { image_id: IMAGE.id, accelerator: "nvmm" } });
    const explained = await client(explainLease, { params: { lease_id: id } });
    expect(explained.not_chosen).toMatchObject([
      {
        name: "rack-1",
        reason: "accelerator_missing",
        message: expect.stringContaining("selected_accel not supported by host"),
      },
    ]);
    expect(await client(terminateLease, { params: { lease_id: id } })).toMatchObject({ status: "terminated" });
  });

  it("SEC-01 are read by members, and requested by administrators only", async () => {
    const member = api.as(await tokenFor(api, { id: orgId, slug: "tidewater" }, "member"), orgId);
    expect((await member(listLeases, {})).items.length).toBeGreaterThan(0);
    await expect(member(createLease, { body: { image_id: IMAGE.id } })).rejects.toMatchObject({
      envelope: { code: "forbidden" },
    });
  });
});
