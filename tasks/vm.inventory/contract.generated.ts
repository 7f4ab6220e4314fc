// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared2 = check.chain(check.string(), check.pattern(/^[0-9a-f]{64}$/, "must be a SHA-256, in hex"));
const shared3 = check.oneOf(["kvm", "nvmm", "tcg"], "Invalid option: expected one of \"kvm\"|\"nvmm\"|\"tcg\"");
const shared4 = check.chain(check.number(), check.integer(), check.min(0, "Too small: expected number to be >=0"));
const shared5 = check.chain(
  check.string(),
  check.overwrite((text) => text.replaceAll("\0", "").toWellFormed()),
  check.maxLength(400, "Too big: expected string to have <=400 characters"),
);
const shared6 = check.chain(
  check.string(),
  check.pattern(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "1 to 64 lower-case letters, digits, dots, underscores and hyphens, starting with a letter or digit",
  ),
);
const shared7 = check.nullable(shared5);
const shared8 = check.chain(
  check.string(),
  shared1,
  check.overwrite((input) => input.trim()),
  check.overwrite((text) => text.toWellFormed()),
  check.maxLength(200, "Too big: expected string to have <=200 characters"),
);
const shared9 = check.object({vcpus: shared4, memory_mib: shared4, disk_mib: shared4});
const shared10 = check.pipe(
  check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
  check.chain(
    check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
    check.pattern(
      /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
      "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
    ),
  ),
);

export default {
  type: "vm.inventory",
  summary: "List the VMs of a host and what no VM needs, and remove the latter on request",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 120,
  expiresAfterSeconds: 300,
  concurrency: 1,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 524288,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
  },
  params: check.of(check.strictObject({
    expected: check.defaulted(
      check.nullable(check.array(shared10, [[512, "Too big: expected array to have <=512 items"]])),
      () => null,
    ),
    remove: check.defaulted(check.boolean(), () => false),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    report: check.object({
      qemu: check.object({version: shared8, path: shared8}),
      accelerator: check.nullable(shared3),
      accelerators: check.array(
        check.object({name: shared3, usable: check.boolean(), detail: shared5}),
        [[3, "Too big: expected array to have <=3 items"]],
      ),
      network: check.object({
        backend: check.oneOf(
          ["user", "bridge", "tap"],
          "Invalid option: expected one of \"user\"|\"bridge\"|\"tap\"",
        ),
        interface: check.nullable(shared8),
      }),
      capacity: check.object({physical: shared9, allocatable: shared9, free: shared9, most_vms: shared4}),
      io_pressure_percent: check.nullable(check.chain(
        check.number(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(100, "Too big: expected number to be <=100"),
      )),
      images: check.array(
        check.object({
          id: shared6,
          sha256: check.nullable(shared2),
          file_bytes: shared4,
          virtual_bytes: check.nullable(shared4),
          references: shared4,
          problem: shared7,
          fetched: check.defaulted(check.boolean(), () => false),
        }),
        [[256, "Too big: expected array to have <=256 items"]],
      ),
      image_sources: check.defaulted(
        check.array(
          check.chain(
            check.string(),
            shared1,
            check.overwrite((input) => input.trim()),
            check.overwrite((text) => text.toWellFormed()),
            check.maxLength(500, "Too big: expected string to have <=500 characters"),
          ),
          [[32, "Too big: expected array to have <=32 items"]],
        ),
        () => [],
      ),
      vms: check.array(
        check.object({
          vm_id: shared10,
          state: check.oneOf(
            ["launching", "booting", "connected", "disconnected", "terminating", "ended"],
            "Invalid option: expected one of \"launching\"|\"booting\"|\"connected\"|\"disconnected\"|\"terminating\"|\"ended\"",
          ),
          end: check.nullable(check.oneOf(
            [
              "terminated",
              "ttl",
              "connect_deadline",
              "disconnected",
              "guest_off",
              "process_gone",
              "no_lease",
            ],
            "Invalid option: expected one of \"terminated\"|\"ttl\"|\"connect_deadline\"|\"disconnected\"|\"guest_off\"|\"process_gone\"|\"no_lease\"",
          )),
          connected_at: check.nullable(check.chain(
            check.string(),
            check.pattern(
              /^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z))$/,
              "Invalid ISO datetime",
            ),
            check.refine((text) => !text.startsWith("0000"), "there is no year 0"),
          )),
          vcpus: shared4,
          memory_mib: shared4,
          disk_mib: shared4,
          image_id: shared6,
        }),
        [[512, "Too big: expected array to have <=512 items"]],
      ),
      warm_vms: check.defaulted(
        check.array(
          check.object({
            vm_id: shared10,
            image_id: shared6,
            image_sha256: shared2,
            accelerator: shared3,
            vcpus: shared4,
            memory_mib: shared4,
            disk_mib: shared4,
          }),
          [[64, "Too big: expected array to have <=64 items"]],
        ),
        () => [],
      ),
      problem: shared7,
    }),
    strays: check.array(
      check.strictObject({
        kind: check.oneOf(
          ["process", "overlay", "seed", "socket", "tap", "record", "vm"],
          "Invalid option: expected one of \"process\"|\"overlay\"|\"seed\"|\"socket\"|\"tap\"|\"record\"|\"vm\"",
        ),
        name: shared5,
        vm_id: check.nullable(shared10),
        action: check.oneOf(
          ["removed", "would_remove", "kept"],
          "Invalid option: expected one of \"removed\"|\"would_remove\"|\"kept\"",
        ),
        why: shared5,
      }),
      [[500, "Too big: expected array to have <=500 items"]],
    ),
  })),
} satisfies CheckedTaskType;
