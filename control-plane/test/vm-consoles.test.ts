// Consoles and serial logs of VMs at the api: who gets them, what the host is asked for, and how they end. Host and gateway are
// played by the test, over the real listeners.

import type { Client } from "@holdfast/contracts/client";
import { addImage } from "@holdfast/contracts/endpoints/images";
import { createLease, getLease, readLeaseLog, terminateLease } from "@holdfast/contracts/endpoints/leases";
import { listTasks } from "@holdfast/contracts/endpoints/tasks";
import { createConsoleToken, listMyTerminals, listTerminals } from "@holdfast/contracts/endpoints/terminals";
import { createToken, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import type { TaskOffer } from "@holdfast/contracts/node/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { hostReport, IMAGE } from "../../testkit/api/leases.ts";
import { endTask, takeTask } from "../../testkit/api/terminals.ts";
import { reportVms } from "../../testkit/api/vm-hosts.ts";
import {
  api,
  auditOf,
  claim,
  client,
  grantOf,
  kelp,
  other,
  place,
  prepareTerminals,
  refusal,
  send,
  superuser,
} from "./support/terminals.ts";

prepareTerminals();
let admin: Client;
beforeAll(async () => {
  admin = api.operator(kelp.id);
  await admin(addImage, { body: IMAGE });
});

const mintConsole = (leaseId: string, as: Client = admin, body: { session_id?: string } = {}) =>
  as(createConsoleToken, { params: { lease_id: leaseId }, body });
const statusOf = async (leaseId: string) => (await admin(getLease, { params: { lease_id: leaseId } })).status;

/** The next task of this type that the host is offered; inventories come in between. */
async function take(type: string): Promise<TaskOffer> {
  for (;;) {
    const task = await takeTask(place.node);
    if (task.task_type === type) return task;
    expect(task.task_type).toBe("vm.inventory");
    await endTask(place.node, task, { status: "succeeded", result: { report: hostReport(), strays: [] } });
  }
}

/** Whose VM boots on the host of this test. */
async function bootingLease() {
  await superuser`UPDATE vm_hosts SET enabled = false`;
  await reportVms(place.node);
  const lease = await admin(createLease, { body: { image_id: IMAGE.id, profile: "tiny" } });
  const launch = await take("vm.launch");
  const { vm_id } = launch.params as { vm_id: string };
  const result = { vm_id, pid: 4711, accelerator: "kvm", network: "user", serial_log: "/var/log/serial" };
  await endTask(place.node, launch, { status: "succeeded", result });
  await expect.poll(() => statusOf(lease.id)).toBe("booting");
  return { id: lease.id, vmId: vm_id };
}

const closeCode = async (sessionId: string) => {
  const [row] = await superuser<{ close_code: string | null }[]>`
    SELECT close_code FROM terminal_sessions WHERE id = ${sessionId}`;
  return row?.close_code;
};

describe("a console", () => {
  it("VM-04 TASK-07 is opened by a task for the VM of the lease, is listed, and ends with the lease", async () => {
    const lease = await bootingLease();
    const { token, session_id, correlation_id } = await mintConsole(lease.id);
    expect(await grantOf(token)).toMatchObject({ session_id, allocation_id: null, node_id: place.node.id });
    expect((await send(session_id)).body).toMatchObject({ sent: true });
    const task = await take("vm.console");
    expect(task).toMatchObject({
      task_type: "vm.console",
      params: { session_id, vm_id: lease.vmId, correlation_id },
    });
    await endTask(place.node, task, { status: "succeeded", result: {} });
    const listed = {
      id: session_id,
      lease_id: lease.id,
      allocation_id: null,
      username: "console",
      state: "opening",
    };
    expect((await admin(listTerminals, { query: { lease_id: lease.id } })).items).toMatchObject([listed]);
    expect((await admin(listMyTerminals, {})).items).toMatchObject([listed]);
    expect((await client(listTerminals, { query: { lease_id: lease.id } })).items).toEqual([]);
    expect(await auditOf(correlation_id)).toContain("terminal.create_console_token allowed");
    const again = await mintConsole(lease.id, admin, { session_id });
    expect(again.session_id).toBe(session_id);
    expect(await closeCode(session_id)).toBeNull();

    await admin(terminateLease, { params: { lease_id: lease.id } });
    const removal = await take("vm.terminate");
    // The console stays until the VM is gone.
    expect(await closeCode(session_id)).toBeNull();
    const result = { vm_id: lease.vmId, existed: true, end: "terminated", serial_tail: "the last words" };
    await endTask(place.node, removal, { status: "succeeded", result });
    await expect.poll(() => closeCode(session_id)).toBe("terminal_vm_ended");
    expect(await refusal(mintConsole(lease.id))).toMatchObject({
      ...{ code: "terminal_token_mint_failed", details: { reason: "lease_terminated", lease: "terminated" } },
      message: "The lease has no running VM: terminated.",
    });
    expect(await claim(again.token)).toMatchObject({
      status: 401,
      body: { details: { reason: "terminal_vm_ended" } },
    });
    expect(await admin(readLeaseLog, { params: { lease_id: lease.id } })).toEqual({
      ...{ text: "the last words", next: null, skipped: false, ended: true },
    });
  });

  it("VM-04 is for those who may write leases and use terminals, in their own organization, and ends with their token", async () => {
    const lease = await bootingLease();
    expect(await refusal(mintConsole(lease.id, client))).toMatchObject({ status: 403, code: "forbidden" });
    expect(await refusal(mintConsole(lease.id, api.operator(other.id)))).toMatchObject({
      status: 404,
      code: "not_found",
    });
    const tokenWith = (...scopes: ("leases:write" | "terminals:use")[]) =>
      admin(createToken, { body: { name: `with ${scopes}`, role: "admin", scopes } });
    const without = await tokenWith("leases:write");
    expect(await refusal(mintConsole(lease.id, api.as(without.token)))).toMatchObject({
      ...{ status: 403, details: { needed: "terminals:use" } },
    });
    const both = await tokenWith("leases:write", "terminals:use");
    const { session_id } = await mintConsole(lease.id, api.as(both.token));
    expect(await refusal(mintConsole(lease.id, admin, { session_id }))).toMatchObject({
      code: "terminal_session_unknown",
    });
    await admin(revokeToken, { params: { token_id: both.id } });
    await expect.poll(() => closeCode(session_id)).toBe("terminal_api_token_ended");
    const demoted = await tokenWith("leases:write", "terminals:use");
    const opened = await mintConsole(lease.id, api.as(demoted.token));
    await superuser`UPDATE api_tokens SET scopes = '{terminals:use}' WHERE id = ${demoted.id}`;
    await expect.poll(() => closeCode(opened.session_id)).toBe("terminal_access_ended");
  });

  it("VM-04 is refused while there is no VM", async () => {
    const waiting = await admin(createLease, { body: { image_id: IMAGE.id, arch: "arm64" } });
    expect(await refusal(mintConsole(waiting.id))).toMatchObject({
      ...{ code: "terminal_token_mint_failed", next_step: "Wait until its VM boots, then try again." },
    });
  });
});

describe("a serial log", () => {
  it("DASH-05 TASK-07 is read by a task that leaves nothing in the database, and is waited for", async () => {
    const lease = await bootingLease();
    const read = (query: { from?: string; wait_seconds?: number } = {}) =>
      client(readLeaseLog, { params: { lease_id: lease.id }, query });
    const first = read();
    const task = await take("vm.serial_log");
    expect(task).toMatchObject({
      task_type: "vm.serial_log",
      params: { vm_id: lease.vmId, from: null, wait_seconds: 0 },
    });
    const result = { text: "booted\n", next: "12-34.7", skipped: false };
    await endTask(place.node, task, { status: "succeeded", result });
    expect(await first).toEqual({ ...result, ended: false });
    const second = read({ from: "12-34.7", wait_seconds: 20 });
    const next = await take("vm.serial_log");
    expect(next.params).toMatchObject({ from: "12-34.7", wait_seconds: 20 });
    await endTask(place.node, next, {
      ...{ status: "failed", failure: { code: "vm_missing", message: "It does not run.", next_step: "" } },
    });
    expect(await second).toEqual({ text: "", next: null, skipped: false, ended: true });
    expect((await admin(listTasks, { query: { type: "vm.serial_log" } })).items).toEqual([]);
    expect(await refusal(read({ from: "not a place" }))).toMatchObject({ status: 400 });
    expect(await refusal(api.operator(other.id)(readLeaseLog, { params: { lease_id: lease.id } }))).toMatchObject({
      ...{ status: 404, code: "not_found" },
    });
  });

  it("DASH-05 of a host that reports a failure says why", async () => {
    const lease = await bootingLease();
    const read = client(readLeaseLog, { params: { lease_id: lease.id } });
    await endTask(place.node, await take("vm.serial_log"), {
      ...{ status: "failed", failure: { code: "executor_failed", message: "It broke.", next_step: "" } },
    });
    expect(await refusal(read)).toMatchObject({
      status: 503,
      code: "lease_log_unavailable",
      message: expect.stringContaining("It broke."),
    });
  });
});
