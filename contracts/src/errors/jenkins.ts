// Jenkins controllers.

import type { ErrorEntry } from "./entry.ts";

export const jenkinsErrors = {
  jenkins_address_refused: {
    status: 400,
    message: "This address cannot be the URL of a Jenkins controller.",
    retryable: false,
    nextStep:
      "Use a public https:// URL without a password in it. The operator of the installation can allow private addresses with HOLDFAST_JENKINS_ALLOW_PRIVATE.",
  },
  jenkins_controller_in_use: {
    status: 409,
    message: "Builds of the controller have VMs.",
    retryable: false,
    nextStep:
      "Run `holdfast jenkins disable <name>` and wait until they have ended; or pass `--force`, and delete their nodes on the controller by hand.",
  },
} as const satisfies Record<string, ErrorEntry>;
