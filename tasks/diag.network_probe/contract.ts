// Whether a node reaches the server, hop by hop. Endpoints are chosen by their names in the node's
// profile: nobody can point it at an address.

import { probeCodeNames } from "@holdfast/contracts/preflight/probe-codes";
import { z } from "zod";
import { taskType } from "../type.ts";

const Reported = z.string().max(300);

/** In the order they are taken; what comes after a failed one is not tried. */
const Hop = z.enum(["dns", "address", "tcp", "tls", "mtls", "task_wait"]);

export default taskType({
  type: "diag.network_probe",
  summary: "Try the way to the server's endpoints: DNS, TCP, TLS, mTLS, waiting for tasks",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 90,
  expiresAfterSeconds: 120,
  concurrency: 2,
  capabilities: [],
  byHand: true,
  resultBytes: 64 * 1024,
  params: z.strictObject({
    endpoints: z
      .array(z.string().regex(/^[a-z][a-z0-9_]{0,31}$/, "the name of an endpoint, such as node_api"))
      .min(1)
      .max(16)
      .optional()
      .describe("Names from the node's profile; left out, all of them."),
    hold_seconds: z
      .int()
      .min(0)
      .max(25)
      .default(0)
      .describe("How long the probe of `tasks/wait` is held, to find proxies that cut idle connections."),
  }),
  progress: z.strictObject({ done: z.int(), of: z.int() }),
  result: z.strictObject({
    profile: z.strictObject({ name: Reported, version: z.int() }),
    /** Every hop of every endpoint is good. */
    ok: z.boolean(),
    endpoints: z.array(
      z.strictObject({
        name: Reported,
        host: Reported,
        port: z.int().nullable(),
        ok: z.boolean(),
        hops: z.array(
          z.strictObject({
            hop: Hop,
            ok: z.boolean(),
            ms: z.number().nonnegative(),
            /** What went wrong, such as `tcp_refused`. */
            code: z.enum(probeCodeNames).nullable(),
            /** Of the server's error, if it was a Holdfast server that refused. */
            server_code: Reported.nullable().optional(),
            detail: Reported.nullable(),
          }),
        ),
        /** What the name led to, and which of it was connected to. */
        addresses: z.array(Reported).max(16),
        address: Reported.nullable(),
        certificate: z
          .strictObject({
            trusted_by: z.enum(["trust_bundle", "system"]).nullable(),
            issuer: Reported.nullable(),
            not_after: Reported.nullable(),
            protocol: Reported.nullable(),
          })
          .nullable(),
      }),
    ),
  }),
  failures: {
    endpoint_unknown: {
      message: "The node's profile has no endpoint of that name.",
      nextStep: "Choose among the names that the profile has, or leave them out to probe all.",
    },
  },
});
