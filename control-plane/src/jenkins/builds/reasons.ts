// Why a build's VM and node are removed, in words that contain the fix. Stored with the build; codes are for programs.

import type { TaskFailure } from "@holdfast/contracts/node/protocol";

type About = {
  leaseId: string;
  leaseLabel: string;
  nodeName: string;
  connectSeconds: number;
  graceSeconds: number;
};

const nothingToDo = "No action is needed.";
const again = "Another VM is requested by itself while the item is queued.";

const reasons = {
  build_ended: () => ({ message: "The build has ended.", next_step: nothingToDo }),
  item_cancelled: () => ({ message: "The item was cancelled.", next_step: nothingToDo }),
  item_left: () => ({
    message: "The item left the queue, and no build is on the node: it ran elsewhere, or ended within seconds.",
    next_step: nothingToDo,
  }),
  never_connected: ({ leaseId, connectSeconds }: About) => ({
    message: `The agent in the VM did not connect to the controller within ${connectSeconds} s.`,
    next_step:
      "Check that the image has java and curl or fetch, and that a VM reaches the controller's URL: on the host, the end of the VM's " +
      `serial console is in the result of the task vm.terminate (\`holdfast lease show ${leaseId}\`). ${again}`,
  }),
  disconnected: ({ graceSeconds }: About) => ({
    message: `The agent was disconnected from the controller for more than ${graceSeconds} s, or while its build ran.`,
    next_step: `Check the network between the VM and the controller. ${again}`,
  }),
  lease_ended: ({ leaseId }: About) => ({
    message: "The VM has ended before its build.",
    next_step: `\`holdfast lease show ${leaseId}\` says why. ${again}`,
  }),
  node_missing: ({ nodeName }: About) => ({
    message: `The node ${nodeName} was deleted on the controller.`,
    next_step: `If nobody did that on purpose, check the audit of the controller. ${again}`,
  }),
} as const;

export type BuildReasonCode = keyof typeof reasons;

export function buildReason(code: BuildReasonCode, about: About): TaskFailure {
  return { code, ...reasons[code](about) };
}

export const leaseRefused = (message: string, nextStep: string): TaskFailure => ({
  code: "lease_refused",
  message: `No VM can be requested: ${message}`,
  next_step: nextStep,
});

export const nodeRefused = (detail: string): TaskFailure => ({
  code: "node_refused",
  message: `The controller did not create the node: ${detail}`,
  next_step:
    "Check on the controller that inbound agents over WebSocket are allowed and that the user may create agents.",
});

export const controllerDisabled: TaskFailure = {
  code: "controller_disabled",
  message: "The controller was disabled before a VM was requested.",
  next_step: "Run `holdfast jenkins enable` to serve its queue again.",
};
