// The report of a preflight: what `holdfast preflight --json` prints, what the api stores and hands out, and what is
// published as a JSON Schema. A field never changes its meaning; a change of that kind is a new format.

import { z } from "zod";
import { Id, ReasonText, ReportedText, Text, Time } from "../fields.ts";
import { NodeLabel } from "../node/protocol.ts";
import { ownerIds } from "../reasons/owners.ts";
import { nextActionIds, severities } from "../reasons/vocabulary.ts";
import { preflightHops, preflightOmissions, preflightVantages } from "./checks.ts";

export const PREFLIGHT_FORMAT = "holdfast-preflight/1";
export const PREFLIGHT_SCHEMA_PATH = "/schemas/preflight-report.v1.json";

const Said = ReportedText.max(600);
const Address = ReportedText.max(300);

export const preflightStatuses = ["passed", "failed", "not_run"] as const;
export type PreflightStatus = (typeof preflightStatuses)[number];
export const preflightResults = ["ready", "failed", "incomplete"] as const;
export type PreflightResult = (typeof preflightResults)[number];

/** What `--run-ws-smoke` shows about browsers. */
const browserProofs = ["proved", "no browser-equivalent proof"] as const;

const failureFields = {
  code: ReasonText.describe("Of the catalogue of reasons."),
  title: Said,
  signal: ReasonText.describe("What alarms and dashboards call it."),
  owner: z.enum(ownerIds).nullable().describe("Who repairs it."),
  severity: z.enum(severities).nullable(),
  next_action: z.enum(nextActionIds),
  recovery: ReportedText.max(2000).describe("What to do now."),
};

export const PreflightHopReport = z.strictObject({
  hop: z.enum(preflightHops),
  status: z.enum(preflightStatuses),
  why: z
    .enum(preflightOmissions)
    .nullable()
    .describe("Why it was not run. `no_evidence`: it could not be checked from here."),
  checked_from: z
    .enum(preflightVantages)
    .nullable()
    .describe("What a check proves depends on where it was made from."),
  detail: Said.describe("What was seen, without secrets."),
  ms: z.number().nonnegative(),
  failure: z.strictObject(failureFields).nullable(),
});
export type PreflightHopReport = z.infer<typeof PreflightHopReport>;

export const PreflightReport = z.strictObject({
  format: z.literal(PREFLIGHT_FORMAT),
  started_at: Time,
  finished_at: Time,
  allocation_id: Id.nullable().describe("Null: only the node was checked."),
  node_id: Id,
  session_id: Id.nullable().describe("Of the terminal that was opened for the checks."),
  correlation_id: Text.max(64).describe("Of every request of this run, in audit and logs."),
  hostname: ReportedText.max(200).nullable(),
  provider: NodeLabel.nullable(),
  private_ip: ReportedText.max(64).nullable(),
  expected: z
    .strictObject({
      api_url: Address.nullable(),
      terminal_url: Address.nullable(),
      node_runtime_api_url: Address.nullable(),
      node_runtime_resolve_address: Address.nullable(),
      node_terminal_url: Address.nullable(),
      node_terminal_resolve_address: Address.nullable(),
      profile: Address.nullable().describe("Name and version of the environment profile that the node uses."),
    })
    .describe("The addresses that were checked."),
  disk: z
    .strictObject({
      used_percent: z.number().min(0).max(100).nullable().describe("Of the root file system."),
      pressure_percent: z.number().min(0).max(100).nullable(),
      diagnostic_path_writable: z.boolean().nullable(),
    })
    .nullable()
    .describe("Null: nothing is known about it."),
  result: z
    .enum(preflightResults)
    .describe("`incomplete`: nothing failed, and a requested check could not be made."),
  failed_hop: z.enum(preflightHops).nullable().describe("The cause, if one was found; otherwise the symptom."),
  symptom_hop: z.enum(preflightHops).nullable().describe("What failed first, if `failed_hop` explains it."),
  classification: z
    .strictObject({ ...failureFields, message: Said, runbook: Said.nullable() })
    .nullable()
    .describe("Of the failed hop."),
  owner: z.enum(ownerIds).nullable().describe("Who repairs the failed hop."),
  ssh: z.enum(["succeeded", "failed"]).nullable().describe("Login to the host; null: not tried."),
  browser_proof: z.enum(browserProofs).nullable().describe("Null: the WebSocket smoke was not requested."),
  compared_with: z
    .strictObject({
      environment: Address,
      node_terminal_reachability: z.enum(preflightStatuses),
      node_runtime_api_reachability: z.enum(preflightStatuses),
    })
    .nullable()
    .describe("The other environment of `--compare-profile`."),
  hops: z.array(PreflightHopReport).length(preflightHops.length).describe("All of them, in their order."),
});
export type PreflightReport = z.infer<typeof PreflightReport>;

/** As it is published. */
export function preflightReportSchema(): Record<string, unknown> {
  return {
    ...z.toJSONSchema(PreflightReport, { io: "output", unrepresentable: "any" }),
    $id: PREFLIGHT_SCHEMA_PATH,
    title: "Report of `holdfast preflight`",
  };
}
