// Launches one disposable VM. The result comes when QEMU runs; the guest's connection, and every later change, is in the
// heartbeats of the host (`vm_host.vms`).

import { LaunchedVm, VmLaunch } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.launch",
  summary: "Launch a disposable VM from a base image",
  kind: "desired_state",
  // A VM that ended must not appear a second time because its task was delivered again.
  idempotent: false,
  timeoutSeconds: 120,
  expiresAfterSeconds: 120,
  concurrency: 4,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 4096,
  params: VmLaunch,
  /** Phases: `checking`, `cloud_init`, `overlay`, `network`, `qemu`, `uplink`. */
  progress: z.strictObject({}),
  result: LaunchedVm,
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
      nextStep:
        "Verify that it exists at NODE_AGENT_BASE_IMAGE_DIR/<base_image_id>.qcow2 on the node, and that the agent may read it.",
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
      nextStep:
        "Use `auto`, which falls back to tcg. For kvm (Linux), check /dev/kvm and its permissions on the node; for nvmm (DragonFlyBSD), check that the nvmm module is loaded and that QEMU takes `-accel nvmm`.",
    },
    vm_network_unusable: {
      message: "The node cannot connect a VM to its configured network.",
      nextStep:
        "The detail says what is missing. For bridge and tap, set NODE_AGENT_NETWORK_INTERFACE to an existing interface and restart the agent; for `user`, install slirp4netns.",
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
  orderKey: ({ vm_id }) => vm_id,
});
