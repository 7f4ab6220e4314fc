// The fields that the API presents of every reason, beside its code: see `presentReason`.

import { z } from "zod";
import { ownerIds } from "../reasons/owners.ts";
import { nextActionIds, severities } from "../reasons/vocabulary.ts";

export const reasonFields = {
  title: z.string().describe("A few words for headings and lists."),
  severity: z.enum(severities).nullable().describe("Null: not a fault, or not known to this server."),
  owner_id: z.enum(ownerIds).nullable().describe("Who repairs it, more exactly than `owner`."),
  next_action: z.enum(nextActionIds).nullable().describe("The kind of repair."),
  runbook: z
    .string()
    .nullable()
    .describe("The path of its runbook on this server. Null: not known to this server."),
};
