// Why bubblewrap does not work on a host, and what its owner can do.

import type { SandboxProblem } from "../driver.ts";

/** `message`: of a trial; undefined: the program is missing. */
export function problemOf(message: string | undefined): SandboxProblem {
  if (message === undefined) {
    return {
      what: "bubblewrap is not installed",
      remedy: "install it: apt-get install bubblewrap, or dnf install bubblewrap",
    };
  }
  if (/namespace|clone|uid map|uid_map|setting up/i.test(message)) {
    return {
      what: `bubblewrap cannot create user namespaces: ${message}`,
      remedy:
        "allow them: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000, on Ubuntu also " +
        "kernel.apparmor_restrict_unprivileged_userns=0; in a container, run the agent on the host instead",
    };
  }
  return {
    what: `bubblewrap does not work: ${message}`,
    remedy: "repair what the message names, and check again",
  };
}
