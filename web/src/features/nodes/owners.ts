// Where somebody can mend what is wrong.

import type { DiagnosticOwner } from "@holdfast/contracts/diagnostics";

export const owners: Record<DiagnosticOwner, string | null> = {
  nobody: null,
  node: "On the machine",
  network: "On the network",
  platform: "At the server",
};
