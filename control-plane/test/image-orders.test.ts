// Images that hosts fetch, with real PostgreSQL: a lease orders the fetch, failures wait, retired images are removed from the hosts
// that fetched them and from no other.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import {
  failedWith,
  hostReport,
  IMAGE,
  type LeaseLab,
  openLeaseLab,
  outcomeOf,
} from "../../testkit/api/leases.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { explainWaiting } from "../src/leases/explain.ts";
import { keepImages, selectImageOrders } from "../src/leases/image-orders.ts";

const URL_OF_IMAGE = "https://images.example.com/base/debian-13.qcow2";
const sources = ["https://images.example.com/base/"];
const fetched = { ...IMAGE, file_bytes: 1, virtual_bytes: 1, references: 0, problem: null, fetched: true };
const policy = { mostPerHost: 512, mostInTotal: 1000, staleAfterSeconds: 120 };

let lab: LeaseLab;
beforeAll(async () => {
  lab = await openLeaseLab();
});

const newOrg = async () => {
  const org = await lab.newOrg();
  await lab.superuser`UPDATE vm_images SET source = 'remote_cache', url = ${URL_OF_IMAGE} WHERE org_id = ${org}`;
  return org;
};
const keep = () => keepImages({ system: lab.system, tasks: lab.engine, log: quiet, staleAfterSeconds: 120 });
const imageTasks = (host: string) => lab.superuser<{ type: string; params: unknown }[]>`
  SELECT type, params FROM tasks WHERE node_id = ${host} AND type LIKE 'vm.image%' ORDER BY id`;
const explained = async (org: string, leaseId: string) =>
  (await explainWaiting(lab.system, { orgId: org, leaseId }, policy)).not_chosen;
const fetchedAll = (host: string) =>
  lab.respond(host, () => ({
    status: "succeeded",
    result: { image_id: IMAGE.id, sha256: IMAGE.sha256, file_bytes: 1, fetched: true, resumed_from_bytes: 0 },
  }));

describe("a lease whose image no host has", () => {
  it("VM-02 VM-07 orders one fetch, waits for it, and is placed where the image then is", async () => {
    const org = await newOrg();
    const [small, large] = [
      await lab.newHost(org, { images: [], image_sources: sources }),
      await lab.newHost(org, {
        ...{ images: [], image_sources: sources },
        capacity: { ...hostReport().capacity, allocatable: { vcpus: 64, memory_mib: 99_999, disk_mib: 999_999 } },
      }),
    ];
    const lease = await lab.newLease(org);
    await lab.newLease(org);
    expect((await explained(org, lease)).map(({ reason }) => reason)).toEqual([
      "image_fetchable",
      "image_fetchable",
    ]);
    await Promise.all([lab.advance(), lab.advance(), lab.advance()]);
    expect(await imageTasks(large)).toEqual([
      { type: "vm.image_fetch", params: { image: { ...IMAGE }, url: URL_OF_IMAGE } },
    ]);
    expect(await imageTasks(small)).toEqual([]);
    const waiting = await explained(org, lease);
    expect(waiting.find(({ host_id }) => host_id === large)).toMatchObject({
      reason: "image_fetching",
      message: `It is fetching the image ${IMAGE.id}. No action is needed.`,
    });
    await fetchedAll(large);
    await lab.report(large, { images: [fetched], image_sources: sources });
    expect(await keep()).toMatchObject({ settled: 1 });
    await lab.advance();
    expect(await lab.row(lease)).toMatchObject({ status: "provisioning", host_id: large });
    expect(await imageTasks(small)).toEqual([]);
  });

  it("VM-02 is placed on a host that has it, and nothing is fetched", async () => {
    const org = await newOrg();
    const cold = await lab.newHost(org, { images: [], image_sources: sources });
    const warm = await lab.newHost(org, { image_sources: sources });
    const lease = await lab.newLease(org);
    await lab.advance();
    expect((await lab.row(lease)).host_id).toBe(warm);
    expect(await imageTasks(cold)).toEqual([]);
  });

  it("VM-09 names the setting where the owner of a host does not allow the address", async () => {
    const org = await newOrg();
    const host = await lab.newHost(org, { images: [], image_sources: ["https://other.example.com/"] });
    const lease = await lab.newLease(org);
    await lab.advance();
    expect(await explained(org, lease)).toMatchObject([
      { reason: "image_source_refused", message: expect.stringContaining("HOLDFAST_VM_IMAGE_SOURCES") },
    ]);
    expect(await imageTasks(host)).toEqual([]);
  });

  it("VM-07 VM-09 goes to another host when a fetch fails, says why, and tries again later", async () => {
    const org = await newOrg();
    const hosts = [
      await lab.newHost(org, { images: [], image_sources: sources }),
      await lab.newHost(org, { images: [], image_sources: sources }),
    ];
    const lease = await lab.newLease(org);
    await lab.advance();
    const asked = (await Promise.all(hosts.map(imageTasks))).findIndex((tasks) => tasks.length === 1);
    const [first = "", second = ""] = asked === 0 ? hosts : hosts.toReversed();
    await lab.respond(first, () => failedWith("vm_image_source_unreachable"));
    await keep();
    await lab.advance();
    expect(await imageTasks(first)).toHaveLength(1);
    expect(await imageTasks(second)).toHaveLength(1);
    const refusal = (await explained(org, lease)).find(({ host_id }) => host_id === first);
    expect(refusal).toMatchObject({
      reason: "image_fetch_failed",
      message: expect.stringContaining("holdfast image prewarm"),
    });
    await lab.respond(second, () => failedWith("vm_image_digest_wrong"));
    await keep();
    const orders = await selectImageOrders(lab.system, org);
    const waits = (host: string) => Number(orders.find(({ node_id }) => node_id === host)?.retry_at) - Date.now();
    // What only a person can repair is tried again much later.
    expect(waits(second)).toBeGreaterThan(10 * waits(first));
    await lab.superuser`UPDATE vm_image_orders SET retry_at = now() WHERE node_id = ${first}`;
    await lab.advance();
    expect(await imageTasks(first)).toHaveLength(2);
    expect(await imageTasks(second)).toHaveLength(1);
  });
});

describe("a retired image", () => {
  it("VM-07 is removed from hosts that fetched it when nothing uses it, and from no other", async () => {
    const org = await newOrg();
    const theirs = await lab.newHost(org, { images: [{ ...fetched, fetched: false }] });
    const using = await lab.newHost(org, { images: [{ ...fetched, references: 1 }] });
    const idle = await lab.newHost(org, { images: [fetched] });
    await keep();
    expect(await imageTasks(idle)).toEqual([]);
    await lab.superuser`UPDATE vm_images SET retired_at = now() WHERE org_id = ${org}`;
    await Promise.all([keep(), keep(), keep()]);
    expect(await imageTasks(idle)).toEqual([{ type: "vm.image_remove", params: { image: { ...IMAGE } } }]);
    expect([await imageTasks(theirs), await imageTasks(using)]).toEqual([[], []]);
    const removed = { image_id: IMAGE.id, removed: true, kept: null };
    await lab.respond(idle, () => ({ status: "succeeded", result: removed }));
    await lab.report(idle, { images: [] });
    await keep();
    await keep();
    expect(await imageTasks(idle)).toHaveLength(1);
    expect(await selectImageOrders(lab.system, org)).toEqual([]);
  });

  it("VM-07 stays while a lease that has not ended uses it", async () => {
    const org = await newOrg();
    const host = await lab.newHost(org, { images: [fetched] });
    const lease = await lab.newLease(org);
    await lab.superuser`UPDATE vm_images SET retired_at = now() WHERE org_id = ${org}`;
    await keep();
    expect(await imageTasks(host)).toEqual([]);
    await lab.advance();
    await lab.respond(host, outcomeOf);
    expect((await lab.row(lease)).host_id).toBe(host);
  });
});

describe("an order", () => {
  it("VM-07 whose task is lost is not outstanding for good", async () => {
    const org = await newOrg();
    const host = await lab.newHost(org, { images: [], image_sources: sources });
    await lab.superuser`
      INSERT INTO vm_image_orders (node_id, org_id, image_id, action, sha256, task_id)
      VALUES (${host}, ${org}, ${IMAGE.id}, 'fetch', ${IMAGE.sha256}, ${uuidv7()})`;
    await keep();
    expect(await selectImageOrders(lab.system, org)).toMatchObject([
      { task_id: null, failure: { code: "task_lost" }, retry_at: expect.any(Date) },
    ]);
  });
});
