// What a host reports about itself and its way to the server: the output of `holdfast agent preflight --json`, read over SSH,
// and what can be made of its diagnostic records when only those are at hand.

import { z } from "zod";
import { ReasonText, ReportedText, Time } from "../fields.ts";
import { probeCodeNames } from "./probe-codes.ts";

export const HOST_PREFLIGHT_FORMAT = "holdfast-host-preflight/1";

const Said = ReportedText.max(400);

export const HostRecord = z.object({
  at: Time,
  last_at: Time.optional(),
  reason: ReasonText,
  detail: Said,
  correlation_id: ReportedText.max(64).nullable().default(null),
});
export type HostRecord = z.infer<typeof HostRecord>;

export const HostEndpoint = z.object({
  name: ReportedText.max(64),
  url: Said,
  ok: z.boolean(),
  /** Of the hop that failed; null: none did. */
  code: z.enum(probeCodeNames).nullable(),
  server_code: Said.nullable(),
  detail: Said,
  ms: z.number().nonnegative(),
});
export type HostEndpoint = z.infer<typeof HostEndpoint>;

/** Not strict: a host may have a newer agent. */
export const HostPreflight = z.object({
  format: z.literal(HOST_PREFLIGHT_FORMAT),
  at: Time,
  hostname: ReportedText.max(200).nullable(),
  private_ip: ReportedText.max(64).nullable(),
  node_id: ReportedText.max(64).nullable(),
  profile: Said.nullable(),
  agent_running: z.boolean().nullable(),
  disk: z
    .object({
      used_percent: z.number().nullable(),
      pressure_percent: z.number().nullable(),
      diagnostic_path_writable: z.boolean().nullable(),
    })
    .nullable(),
  /** What is wrong now, as far as the host knows. */
  problems: z.array(z.object({ reason: ReasonText, detail: Said })).max(64),
  endpoints: z.array(HostEndpoint).max(16),
  records: z.array(HostRecord).max(64),
});
export type HostPreflight = z.infer<typeof HostPreflight>;

/** What is given to `holdfast agent preflight --request -` on its standard input: addresses are never part of a command. */
export const HostPreflightRequest = z.strictObject({
  node_runtime_api_url: Said.optional(),
  node_runtime_resolve_address: Said.optional(),
  node_terminal_url: Said.optional(),
  node_terminal_resolve_address: Said.optional(),
  hold_seconds: z.int().min(0).max(25).optional(),
  /** Of another environment, to compare with. */
  other: z.strictObject({ node_api: Said.optional(), node_terminal: Said.optional() }).optional(),
});
export type HostPreflightRequest = z.infer<typeof HostPreflightRequest>;
