// Rows about nodes that lost their identity, and whether they get another one by themselves.

import { edgeRestartsWith } from "../../faults/edge.ts";
import { trustReplaced } from "../../faults/host.ts";
import {
  allTrustReplaced,
  identityFromBackup,
  offBeyondExpiry,
  offWithoutToken,
  withoutToken,
} from "../../faults/recovery.ts";
import { foreignCa } from "../../scenarios/foreign-ca.ts";
import type { Row } from "../row.ts";

export const recoveryRows: Row[] = [
  {
    row: "D02",
    how: "the host is off until its certificate has expired, and comes back",
    at: "lab",
    lab: { clock: true },
    returns: true,
    async run(scene) {
      const fault = offBeyondExpiry(scene.lab);
      await fault.prepare();
      await scene.breaks(fault);
    },
  },
  {
    row: "D03",
    how: "the host has a certificate that the server has replaced, and the edge is too busy to let it recover",
    at: "lab",
    lab: { edge: true },
    returns: true,
    async run(scene) {
      const fault = identityFromBackup(scene.lab);
      await fault.prepare();
      const rule = { path: "/v1/recover", do: "answer", status: 429, page: "Too many requests" } as const;
      const busy = edgeRestartsWith(scene.lab, "the edge returns 429 to recovery", rule);
      await scene.breaks(busy);
      await scene.breaks(fault);
    },
  },
  {
    row: "D08",
    how: "the bundle with the server's CA is replaced by an old one, and the node has no recovery token; the host's records are handed in",
    at: "lab",
    returns: true,
    async run(scene) {
      await withoutToken(scene.lab);
      await scene.breaks(trustReplaced(scene.lab.node, foreignCa));
      await scene.handsInRecords("trust_bundle_invalid");
    },
  },
  {
    row: "D09",
    how: "all bundles with the server's CA are replaced by old ones; the host's records are handed in",
    at: "lab",
    returns: true,
    async run(scene) {
      await scene.breaks(allTrustReplaced(scene.lab, foreignCa));
      await scene.handsInRecords("recovery_enrollment_blocked");
    },
  },
  {
    row: "D12",
    how: "the host is off until its certificate has expired, and has no recovery token",
    at: "lab",
    lab: { clock: true },
    returns: true,
    async run(scene) {
      const fault = offWithoutToken(scene.lab);
      await fault.prepare();
      await scene.breaks(fault);
    },
  },
];
