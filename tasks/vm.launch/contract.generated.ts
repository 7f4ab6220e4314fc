// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared2 = check.chain(check.string(), check.pattern(/^[0-9a-f]{64}$/, "must be a SHA-256, in hex"));
const shared3 = check.pipe(
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
  type: "vm.launch",
  summary: "Launch a disposable VM from a base image",
  kind: "desired_state",
  idempotent: false,
  timeoutSeconds: 120,
  expiresAfterSeconds: 120,
  concurrency: 4,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 4096,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_exists: {
      message: "A VM with this id is on the node, or is being removed.",
      nextStep: "Use another id, or terminate that VM first.",
    },
    vm_no_capacity: {
      message: "The node has too little free processors, memory, disk or room for another VM.",
      nextStep: "Wait for a VM to end, choose a smaller profile, or another node.",
    },
    vm_image_missing: {
      message: "The base image does not exist on the node.",
      nextStep: "Verify that it exists at NODE_AGENT_BASE_IMAGE_DIR/<base_image_id>.qcow2 on the node, and that the agent may read it.",
    },
    vm_image_changed: {
      message: "The base image on the node does not have the expected SHA-256.",
      nextStep: "Restore the image, or publish the new one under another id and use its digest.",
    },
    vm_image_unusable: {
      message: "The base image cannot be used: it is no complete, independent qcow2 file.",
      nextStep: "Flatten it with `qemu-img convert -O qcow2`, so that it has neither a backing nor a data file.",
    },
    vm_accelerator_unsupported: {
      message: "selected_accel not supported by host: no guest boots with this accelerator on the node.",
      nextStep: "Use `auto`, which falls back to tcg. For kvm (Linux), check /dev/kvm and its permissions on the node; for nvmm (DragonFlyBSD), check that the nvmm module is loaded and that QEMU takes `-accel nvmm`.",
    },
    vm_network_unusable: {
      message: "The node cannot connect a VM to its configured network.",
      nextStep: "The detail says what is missing. For bridge and tap, set NODE_AGENT_NETWORK_INTERFACE to an existing interface and restart the agent; for `user`, install slirp4netns.",
    },
    vm_cloud_init_failed: {
      message: "Launch stage cloud-init failed: the seed was not written. What was begun is undone.",
      nextStep: "On the node, check NODE_AGENT_CLOUD_INIT_DIR: its disk, its owner.",
    },
    vm_user_data_unavailable: {
      message: "The VM's user data could not be taken from the control plane. What was begun is undone.",
      nextStep: "Check the node's connection with the control plane, and request the VM again.",
    },
    vm_overlay_failed: {
      message: "Launch stage overlay failed: the VM's disk was not created. What was begun is undone.",
      nextStep: "On the node, check the overlay directory: free space, its owner.",
    },
    vm_qemu_failed: {
      message: "Launch stage qemu failed: QEMU did not start. What was begun is undone.",
      nextStep: "The detail has QEMU's own message. Check QEMU's version and permissions on the node.",
    },
  },
  params: check.of(check.strictObject({
    vm_id: shared3,
    image: check.strictObject({
      id: check.chain(
        check.string(),
        check.pattern(
          /^[a-z0-9][a-z0-9._-]{0,63}$/,
          "1 to 64 lower-case letters, digits, dots, underscores and hyphens, starting with a letter or digit",
        ),
      ),
      sha256: shared2,
    }),
    vcpus: check.chain(
      check.number(),
      check.integer(),
      check.min(1, "Too small: expected number to be >=1"),
      check.max(256, "Too big: expected number to be <=256"),
    ),
    memory_mib: check.chain(
      check.number(),
      check.integer(),
      check.min(64, "Too small: expected number to be >=64"),
      check.max(4194304, "Too big: expected number to be <=4194304"),
    ),
    disk_gib: check.defaulted(
      check.nullable(check.chain(
        check.number(),
        check.integer(),
        check.min(1, "Too small: expected number to be >=1"),
        check.max(65536, "Too big: expected number to be <=65536"),
      )),
      () => null,
    ),
    accelerator: check.defaulted(
      check.oneOf(
        ["auto", "kvm", "nvmm", "tcg"],
        "Invalid option: expected one of \"auto\"|\"kvm\"|\"nvmm\"|\"tcg\"",
      ),
      () => "auto",
    ),
    hostname: check.chain(
      check.string(),
      check.pattern(
        /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
        "a host name: up to 63 lower-case letters, digits and hyphens",
      ),
    ),
    user_data: check.defaulted(
      check.chain(
        check.string(),
        shared1,
        check.refine(
          (text) => text.isWellFormed(),
          "must be valid Unicode: it contains half of a surrogate pair",
        ),
        check.maxLength(131072, "Too big: expected string to have <=131072 characters"),
      ),
      () => "#cloud-config\n{}\n",
    ),
    user_data_sha256: check.optional(shared2),
    ttl_seconds: check.chain(
      check.number(),
      check.integer(),
      check.min(1, "Too small: expected number to be >=1"),
      check.max(2592000, "Too big: expected number to be <=2592000"),
    ),
    connect_within_seconds: check.defaulted(
      check.nullable(check.chain(
        check.number(),
        check.integer(),
        check.min(1, "Too small: expected number to be >=1"),
        check.max(86400, "Too big: expected number to be <=86400"),
      )),
      () => 240,
    ),
    disconnect_grace_seconds: check.defaulted(
      check.nullable(check.chain(
        check.number(),
        check.integer(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(86400, "Too big: expected number to be <=86400"),
      )),
      () => 60,
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    vm_id: shared3,
    pid: check.chain(
      check.number(),
      check.integer(),
      check.above(0, "Too small: expected number to be >0"),
    ),
    accelerator: check.oneOf(["kvm", "nvmm", "tcg"], "Invalid option: expected one of \"kvm\"|\"nvmm\"|\"tcg\""),
    network: check.oneOf(
      ["user", "bridge", "tap"],
      "Invalid option: expected one of \"user\"|\"bridge\"|\"tap\"",
    ),
    serial_log: check.chain(
      check.string(),
      shared1,
      check.overwrite((input) => input.trim()),
      check.overwrite((text) => text.toWellFormed()),
      check.maxLength(1024, "Too big: expected string to have <=1024 characters"),
    ),
  })),
} satisfies CheckedTaskType;
