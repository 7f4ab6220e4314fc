// Why a node is as it is: the causes, who repairs them and how, and what that rests on.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, ReasonText, ReportedText, Text, Time } from "../fields.ts";
import { HostWords } from "../node/protocol.ts";
import { reasonFields } from "../public/reason-fields.ts";
import { ownerIds } from "../reasons/owners.ts";
import { userStates } from "../reasons/vocabulary.ts";
import { Shared } from "./incidents.ts";

export const causeLayers = ["platform", "management", "workload", "access"] as const;
export const causeConfidences = ["high", "medium", "low"] as const;

const Repair = z.union([z.int(), z.enum(["automatic", "next_business_day"])]);

export const Cause = z.strictObject({
  reason: z.string(),
  ...reasonFields,
  message: z.string(),
  next_step: z.string(),
  /** What alarms call it; null: they have no name of their own for it. */
  signal: z.string().nullable(),
  layer: z.enum(causeLayers).describe("Where the fault lies. `platform`: in the control plane itself."),
  confidence: z.enum(causeConfidences),
  user_state: z.enum(userStates),
  also_involves: z.array(z.enum(ownerIds)),
  budget: z.strictObject({
    detect_seconds: z.int(),
    repair: Repair.describe("Seconds, or that it is no emergency."),
  }),
  since: Time.describe("When the first of its evidence was observed."),
  symptoms: z
    .array(z.strictObject({ reason: z.string(), title: z.string() }))
    .describe("What else holds, and is explained by this."),
  evidence: z.array(z.string()).describe("Ids in `evidence` of the explanation."),
  changed_by: z.string().describe("The one observation that would change this verdict."),
});
export type Cause = z.infer<typeof Cause>;

const EvidenceItem = z.strictObject({
  id: z.string(),
  kind: z.string(),
  key: z.string().nullable(),
  value: z.string(),
  observer: z.string(),
  observed_at: Time.describe("The last time that it was observed so."),
  first_observed_at: Time,
  received_at: Time,
  fresh: z.boolean().describe("False: too old to be relied upon."),
  correlation_id: z.string().nullable().describe("Finds the same event in the audit trail and in the logs."),
  detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).nullable(),
});

export const layerStates = ["working", "impaired", "recovering", "unknown"] as const;
export type LayerState = (typeof layerStates)[number];

/** Never one bit: that a node cannot be managed says nothing about what runs on it. */
export const Layers = z.strictObject({
  management: z.enum(layerStates),
  workload: z.enum(layerStates),
  access: z.enum(layerStates).describe("Whether users reach what runs on the node."),
});
export type Layers = z.infer<typeof Layers>;

/** What has to be seen before a node counts as recovered, in this order. */
export const recoveryChecks = [
  "heartbeat_current",
  "certificate_trusted",
  "task_wait_succeeds",
  "task_completed",
  "no_expired_work",
] as const;
export type RecoveryCheck = (typeof recoveryChecks)[number];

export const recoveryCheckStates = ["done", "failed", "unknown"] as const;
export type RecoveryCheckState = (typeof recoveryCheckStates)[number];

export const contractParts = [
  "process_liveness",
  "endpoint_identity",
  "node_certificate",
  "signing_ca",
  "ingress_acceptance",
  "task_truth",
  "app_runtime",
] as const;
export type ContractPart = (typeof contractParts)[number];

export const contractPartStates = ["in_order", "drifted", "unknown"] as const;
export type ContractPartState = (typeof contractPartStates)[number];

export const Explanation = z.strictObject({
  node_id: Id,
  node_name: z.string(),
  at: Time,
  /** One or two sentences. */
  headline: z.string(),
  healthy: z.boolean(),
  user_state: z
    .enum(userStates)
    .describe("What an affected allocation shows, unless evidence of its own says more."),
  causes: z.array(Cause).describe("Independent of each other, worst first."),
  layers: Layers,
  parts: z.array(
    z.strictObject({
      part: z.enum(contractParts),
      state: z.enum(contractPartStates),
      observer: z.string().nullable(),
      observed_at: Time.nullable(),
    }),
  ),
  checklist: z
    .array(
      z.strictObject({
        check: z.enum(recoveryChecks),
        state: z.enum(recoveryCheckStates).describe("`done` only by fresh evidence."),
        evidence: z.string().nullable().describe("Its id in `evidence`; null: there is none."),
        observed_at: Time.nullable(),
      }),
    )
    .describe("What has to be seen before the node counts as recovered."),
  repaired_at: Time.nullable().describe(
    "Of an incident that ends only with a verified recovery: only later evidence counts in the checklist.",
  ),
  incident: z
    .strictObject({ id: Id, began_at: Time, opened_at: Time })
    .nullable()
    .describe("The open one, if there is one."),
  part_of: z
    .strictObject({ incident_id: Id, reason: z.string(), title: z.string(), shared: Shared, began_at: Time })
    .nullable()
    .describe("The open incident of several nodes that this node's is a symptom of."),
  clone: z
    .strictObject({
      instances: z
        .array(
          z.strictObject({
            holder: z.int().describe("Names this one of the two; their other ids may be equal."),
            ...{ instance_id: z.string(), boot_id: z.string(), certificate_serial: z.string().nullable() },
            ...{ hostname: z.string().nullable(), address: z.string().nullable() },
            ...{ first_seen_at: Time, last_seen_at: Time },
          }),
        )
        .describe("The two that use the node's identity."),
      recommended: z.int().nullable().describe("The `holder` that is probably the original; null: undecided."),
      why: z.array(z.string()),
    })
    .nullable()
    .describe("Null: only one machine uses the node's identity, as far as is known."),
  history: z.array(
    z.strictObject({
      ...{ incident_id: Id, reason: z.string(), title: z.string(), severity: z.string() },
      ...{ began_at: Time, opened_at: Time, closed_at: Time.nullable() },
      detected_after_seconds: z.number(),
      detect_within_seconds: z.int(),
      repaired_after_seconds: z.number().nullable(),
      repair_within: Repair,
    }),
  ),
  evidence: z.array(EvidenceItem),
});
export type Explanation = z.infer<typeof Explanation>;

/** What somebody saw who reached the host when the server could not. */
export const HandedIn = z
  .strictObject({
    observed_at: Time.optional().describe("When the checks were made; default: now."),
    records: z
      .array(
        z.strictObject({
          at: Time,
          /** The last time that it was recorded, if more than once. */
          last_at: Time.optional(),
          reason: ReasonText,
          detail: Text.max(400),
          correlation_id: ReportedText.max(64).nullable(),
          host: HostWords.optional(),
        }),
      )
      .max(64)
      .optional()
      .describe("Records of the host's `diagnostics.log`."),
    ssh: z.enum(["succeeded", "failed"]).optional(),
    guest_agent: z.enum(["healthy", "down"]).optional(),
    host_service: z.enum(["active", "inactive", "failed"]).optional().describe("The agent's service on the host."),
    host_exec: z.enum(["runs", "format_error", "missing"]).optional().describe("The agent's binary on the host."),
  })
  .refine(
    ({ observed_at: _, ...seen }) => Object.values(seen).some((one) => one !== undefined),
    "at least one of records, ssh, guest_agent, host_service, host_exec",
  );

export const addNodeEvidence = endpoint({
  name: "addNodeEvidence",
  noun: "nodes",
  method: "POST",
  path: "/v1/nodes/{node_id}/evidence",
  summary: "Hand in what was seen on or of a host that the server cannot reach",
  description: "Returns the explanation of the node with this evidence. Times in the future are refused.",
  access: { scope: "nodes:write" },
  action: "node.evidence_add",
  params: z.strictObject({ node_id: Id }),
  body: HandedIn,
  answer: Explanation,
});

export const explainNode = endpoint({
  name: "explainNode",
  noun: "nodes",
  method: "GET",
  path: "/v1/nodes/{node_id}/explanation",
  summary: "Explain a node's state: causes, owner, next action, evidence",
  access: { scope: "nodes:diagnose" },
  params: z.strictObject({ node_id: Id }),
  answer: Explanation,
});
