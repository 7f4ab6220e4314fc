// Where a problem has to be repaired.

import type { DiagnosticOwner } from "@holdfast/contracts/diagnostics";

export const owners: Record<DiagnosticOwner, string | null> = {
  nobody: null,
  node: "On the machine",
  network: "On the network",
  platform: "On the server",
};
