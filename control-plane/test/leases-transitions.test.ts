// The transition table of leases, executed: every event is made to happen to a real row in every state, and what comes of it
// is compared with a table that is written down here, apart from the one that the statements are built from.

import { type LeaseState, leaseStates } from "@holdfast/contracts/endpoints/leases";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { type LeaseLab, openLeaseLab, outcomeOf, reportedVm } from "../../testkit/api/leases.ts";
import { applyEvents, type Happened } from "../src/leases/transitions/apply.ts";
import {
  type LeaseEvent,
  leaseEvents,
  leaseTable,
  statesEnded,
  statesOnHost,
} from "../src/leases/transitions/table.ts";

let lab: LeaseLab;
let orgId: string;

beforeAll(async () => {
  lab = await openLeaseLab();
  orgId = await lab.newOrg();
});

/** A state that is the row's next one; or `note`, `late`, `no` (refused); `-` for nothing, `x` where no row can be. */
const expected: Record<LeaseEvent, string> = {
  //                     requested     provisioning  booting      connected    running      terminating  terminated failed orphaned
  place:
    "               provisioning  -             -            -            -            -            -          -      -",
  launch_succeeded:
    "    x             booting       x            late         late         late         late       late   late",
  launch_failed:
    "       x             failed        x            late         late         late         late       late   late",
  launch_unsent:
    "       x             requested     x            late         late         late         late       late   late",
  launch_lost:
    "         x             terminating   x            late         late         late         late       late   late",
  guest_connected:
    "     x             connected     connected    note         note         -            -          -      -",
  guest_disconnected:
    "  x             -             -            note         note         -            -          -      -",
  work_started:
    "        no            no            no           running      -            no           no         no     no",
  vm_exited:
    "           x             -             terminating  terminating  terminating  -            -          -      -",
  vm_missing:
    "          x             -             orphaned     orphaned     orphaned     -            -          -      -",
  connect_deadline:
    "    -             -             terminating  -            -            -            -          -      -",
  disconnect_grace:
    "    x             x             x            terminating  terminating  -            -          -      -",
  ttl: "                 -             terminating   terminating  terminating  terminating  -            -          -      -",
  wait_over:
    "           failed        -             -            -            -            -            -          -      -",
  terminate:
    "           terminated    terminating   terminating  terminating  terminating  -            -          -      -",
  abandon:
    "             x             terminated    terminated   terminated   terminated   terminated   -          -      terminated",
  terminate_succeeded:
    " x             x             x            x            x            terminated   x          x      terminated",
  terminate_failed:
    "    x             x             x            x            x            orphaned     x          x      note",
  terminate_lost:
    "      x             x             x            x            x            note         x          x      note",
  host_retired:
    "        x             orphaned      orphaned     orphaned     orphaned     orphaned     -          -      -",
  stale:
    "               late          late          late         late         late         late         late       late   late",
};

const cells = leaseStates.flatMap((status, column) =>
  leaseEvents.map((event) => ({ status, event, outcome: expected[event].trim().split(/\s+/)[column] ?? "" })),
);

const reason = { code: "test", message: "A test.", next_step: "None." };
const about = async (id: string) => ({ leaseId: id, vmId: (await lab.row(id)).vm_id, reason });
const apply = async (id: string, event: Happened["event"], more: Partial<Happened> = {}) => {
  const [applied] = await applyEvents(lab.system, [{ ...(await about(id)), event, ...more }]);
  return applied;
};

describe("the table", () => {
  it("VM-04 has a cell for every event in every state", () => {
    expect(cells).toHaveLength(leaseStates.length * leaseEvents.length);
    for (const status of leaseStates)
      expect(Object.keys(leaseTable[status]).toSorted()).toEqual([...leaseEvents].toSorted());
  });

  it("VM-04 never leaves an end, and reserves capacity in every state with a host", () => {
    for (const status of statesEnded)
      expect(Object.values(leaseTable[status]).filter((outcome) => typeof outcome === "object")).toEqual([]);
    expect(statesEnded).toEqual(["terminated", "failed"]);
    expect(statesOnHost).toEqual(["provisioning", "booting", "connected", "running", "terminating", "orphaned"]);
  });
});

/** As the engine would have left it, with the task that the event is about still to be applied. */
async function leaseIn(status: LeaseState, event: LeaseEvent): Promise<string> {
  await lab.newHost(orgId);
  const id = await lab.newLease(orgId, { profile: "tiny" });
  if (status === "requested") return id;
  if (status === "failed" && !event.startsWith("launch_") && !isAboutHost(event)) {
    await apply(id, "wait_over");
    return id;
  }
  await lab.advance();
  const { launch_task_id: taskId } = await lab.row(id);
  const keepsLaunch = event.startsWith("launch_");
  if (status === "provisioning") return id;
  if (status === "failed") {
    await apply(id, "launch_failed", { taskId });
    // The checks allow it, and no statement of the product does it: as if the row came from elsewhere.
    if (keepsLaunch) await lab.superuser`UPDATE vm_leases SET launch_settled = false WHERE id = ${id}`;
    return id;
  }
  if (!keepsLaunch) await apply(id, "launch_succeeded", { taskId });
  if (keepsLaunch && status === "booting") {
    await apply(id, "launch_succeeded", { taskId });
    return id;
  }
  if (status === "booting") return id;
  await apply(id, "guest_connected");
  if (status === "connected") return id;
  if (status === "running") {
    await apply(id, "work_started");
    return id;
  }
  if (status === "orphaned") {
    await apply(id, "vm_missing");
  } else await apply(id, "terminate");
  if (status === "terminated") {
    await lab.advance();
    await apply(id, "terminate_succeeded", { taskId: (await lab.row(id)).terminate_task_id });
  } else if (event.startsWith("terminate_") || event === "place") await lab.advance();
  return id;
}

const isAboutHost = (event: LeaseEvent) => event === "abandon" || event === "host_retired";

/** Makes it happen as the product does. */
async function happen(event: LeaseEvent, id: string) {
  const { vm_id, launch_task_id, terminate_task_id, status } = await lab.row(id);
  switch (event) {
    case "place":
      await lab.advance();
      return undefined;
    case "stale":
      return apply(id, "vm_exited", { vmId: uuidv7() });
    case "guest_connected":
      if (status === "connected" || status === "running") await apply(id, "guest_disconnected");
      return apply(id, event);
    case "disconnect_grace":
      if (status === "connected" || status === "running") {
        await apply(id, "guest_disconnected");
        await lab.superuser`UPDATE vm_leases SET disconnected_at = now() - interval '61 seconds' WHERE id = ${id}`;
      }
      return apply(id, event);
    default:
      if (event.startsWith("launch_")) return apply(id, event, { vmId: vm_id, taskId: launch_task_id });
      if (event.startsWith("terminate_")) return apply(id, event, { vmId: vm_id, taskId: terminate_task_id });
      return apply(id, event, event === "work_started" ? { work: "build 7" } : {});
  }
}

/** A row for which the event could happen is refused by the database. */
async function refuseRow(event: LeaseEvent, id: string): Promise<void> {
  const update = () => {
    if (event.startsWith("terminate_"))
      return lab.superuser`UPDATE vm_leases SET terminate_task_id = ${uuidv7()} WHERE id = ${id}`;
    if (event.startsWith("launch_") || event === "disconnect_grace")
      return event === "disconnect_grace"
        ? lab.superuser`UPDATE vm_leases SET disconnected_at = now(), connected_at = now() WHERE id = ${id}`
        : lab.superuser`UPDATE vm_leases SET launch_task_id = ${uuidv7()}, launch_settled = false WHERE id = ${id}`;
    return lab.superuser`UPDATE vm_leases SET vm_id = ${uuidv7()} WHERE id = ${id}`;
  };
  await expect(update()).rejects.toMatchObject({ code: "23514" });
}

describe("an event", () => {
  it.each(cells)("VM-04 $event of a lease that is $status: $outcome", async ({ status, event, outcome }) => {
    const id = await leaseIn(status, event);
    expect((await lab.row(id)).status).toBe(status);
    if (outcome === "x") return refuseRow(event, id);
    const seen = (await lab.events(id)).length;
    const before = await lab.row(id);
    const applied = await happen(event, id);
    const after = await lab.row(id);
    const events = (await lab.events(id)).length - seen;
    switch (outcome) {
      case "-":
        expect(after).toEqual(before);
        expect(events).toBe(0);
        break;
      case "no":
        expect(applied?.outcome).toBe("refused");
        expect(after).toEqual(before);
        break;
      case "late":
        expect(applied?.outcome).toBe("late");
        expect({ ...after, revision: 0, launch_settled: true }).toEqual({
          ...before,
          revision: 0,
          launch_settled: true,
        });
        expect(events).toBe(1);
        break;
      case "note":
        expect(applied?.outcome).toBe("noted");
        expect(after.status).toBe(status);
        expect(after.revision).toBeGreaterThan(before.revision);
        break;
      default:
        expect(after.status).toBe(outcome);
        expect(after.revision).toBeGreaterThan(before.revision);
        expect((await lab.events(id)).at(-1)).toMatchObject({ event, to_status: outcome });
        expect(after.finished_at === null).toBe(!statesEnded.includes(after.status));
    }
    expect(await lab.miscounted()).toEqual([]);
  });
});

describe("a lease on its way", () => {
  it("VM-04 goes from a request to nothing left, by tasks and heartbeats alone", async () => {
    const org = await lab.newOrg();
    const host = await lab.newHost(org);
    const id = await lab.newLease(org);
    await lab.advance();
    expect(await lab.respond(host, outcomeOf)).toMatchObject([{ task_type: "vm.launch" }]);
    await lab.advance();
    const { vm_id } = await lab.row(id);
    await lab.report(host, { vms: [reportedVm(vm_id, "connected")] });
    await lab.advance();
    expect((await lab.row(id)).status).toBe("connected");
    await lab.report(host, { vms: [reportedVm(vm_id, "ended", "guest_off")] });
    await lab.advance();
    expect(await lab.respond(host, outcomeOf)).toMatchObject([{ task_type: "vm.terminate", params: { vm_id } }]);
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "terminated", reason: { code: "guest_off" } });
    const story = (await lab.events(id)).map(({ event }) => event);
    expect(story).toEqual([
      "request",
      "place",
      "launch_succeeded",
      "guest_connected",
      "vm_exited",
      "terminate_succeeded",
    ]);
    expect(await lab.miscounted()).toEqual([]);
  });
});
