// Every row of the failure matrix, and how its fault is made.

import type { Row } from "../row.ts";
import { appRows } from "./apps.ts";
import { hostRows } from "./host.ts";
import { identityRows } from "./identity.ts";
import { linkRows } from "./link.ts";
import { recoveryRows } from "./recovery.ts";
import { terminalRows } from "./terminals.ts";
import { workRows } from "./work.ts";

export const allRows: readonly Row[] = [
  ...linkRows,
  ...identityRows,
  ...recoveryRows,
  ...workRows,
  ...hostRows,
  ...terminalRows,
  ...appRows,
];
