// Rows about who a node is, and whether that is accepted.

import { cloned, fenced, oldCertificate, otherClientCa, signingCaLost } from "../../faults/identity.ts";
import type { Row } from "../row.ts";

export const identityRows: Row[] = [
  {
    row: "D05",
    how: "the server is restarted without the CA that signs certificates of nodes",
    at: "lab",
    returns: true,
    run: (scene) => scene.breaks(signingCaLost(scene.lab)),
  },
  {
    row: "D06",
    how: "nginx in front of the server, which verifies certificates itself, is reloaded with another CA",
    at: "lab",
    lab: { nginx: true },
    returns: true,
    run: (scene) => scene.breaks(otherClientCa(scene.lab)),
  },
  {
    row: "D13",
    how: "an operator quarantines the node",
    at: "lab",
    returns: true,
    run: (scene) => scene.breaks(fenced(scene.lab)),
  },
  {
    row: "D14",
    how: "a second host runs an agent with a copy of the node's state",
    at: "lab",
    lab: { second: true },
    run: (scene) => scene.breaks(cloned(scene.lab)),
  },
  {
    row: "N04",
    how: "the host is restored from a backup that has the certificate before the present one",
    at: "lab",
    returns: true,
    run: (scene) => scene.breaks(oldCertificate(scene.lab)),
  },
];
