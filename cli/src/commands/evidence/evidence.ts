// holdfast evidence: signed bundles of everything about a node, an allocation, an incident or a correlation id.

import { Command } from "commander";
import { addCreate } from "./create.ts";
import { addReplay } from "./replay.ts";
import { addKey, addVerify } from "./verify.ts";

export function evidenceCommand(): Command {
  const evidence = new Command("evidence").description(
    "signed bundles of everything about a node, an allocation, an incident or an id",
  );
  addCreate(evidence);
  addVerify(evidence);
  addReplay(evidence);
  addKey(evidence);
  return evidence;
}
