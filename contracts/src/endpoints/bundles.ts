// Recovery bundles: how an operator brings back a node that cannot recover by itself. The agent uses them with the
// endpoint of recovery tokens (recovery.ts).

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { RecoveryBundle } from "../node/recovery-bundle.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const bundleStates = ["created", "used", "expired", "revoked"] as const;

/** How long a bundle works: when nobody says, and at most. */
export const bundleMinutes = { usual: 24 * 60, most: 7 * 24 * 60 } as const;

/** Without its secret, which is returned once. */
export const BundleSummary = z.strictObject({
  id: Id,
  node_id: Id,
  node_name: z.string(),
  seq: z.int().positive(),
  state: z.enum(bundleStates),
  created_by: z.string(),
  created_at: Time,
  expires_at: Time,
  used_at: Time.nullable(),
  applied_at: Time.nullable().describe("By the host's clock, as the node reported it with its first heartbeat."),
  revoked_at: Time.nullable(),
  correlation_id: z.string(),
});
export type BundleSummary = z.infer<typeof BundleSummary>;

const node = z.strictObject({ node_id: Id });

export const createBundle = endpoint({
  name: "createBundle",
  noun: "nodes",
  method: "POST",
  path: "/v1/nodes/{node_id}/recovery-bundles",
  summary: "Create a recovery bundle for a node",
  description:
    "One signed file that gives the node a new identity with everything that it needs to connect. It works once, only for " +
    "this node, and needs no recovery token. Its use ends every earlier certificate, recovery token and bundle of the node.",
  access: { scope: "nodes:write" },
  action: "node.bundle_create",
  creates: true,
  params: node,
  body: z.strictObject({
    expires_in_minutes: z.int().min(1).max(bundleMinutes.most).default(bundleMinutes.usual),
  }),
  answer: BundleSummary.extend({
    root_sha256: z.string().describe("SHA-256 of the root that signed it (DER), hex."),
    bundle: RecoveryBundle.describe("Contains a secret, and is not shown again."),
    line: z.string().describe("The same as one line to paste."),
  }),
  errors: ["ca_unavailable", "ca_ingress_mismatch", "node_retired", "node_change_refused"],
});

export const listBundles = endpoint({
  name: "listBundles",
  noun: "nodes",
  method: "GET",
  path: "/v1/recovery-bundles",
  summary: "List recovery bundles",
  access: { scope: "nodes:write" },
  query: PageQuery,
  answer: pageOf(BundleSummary),
});

export const revokeBundle = endpoint({
  name: "revokeBundle",
  noun: "nodes",
  method: "DELETE",
  path: "/v1/recovery-bundles/{bundle_id}",
  summary: "Revoke a recovery bundle",
  description: "A node that was recovered with it keeps its identity; a used bundle does not change.",
  access: { scope: "nodes:write" },
  action: "node.bundle_revoke",
  params: z.strictObject({ bundle_id: Id }),
});

export const listNodesWithoutToken = endpoint({
  name: "listNodesWithoutToken",
  noun: "nodes",
  method: "GET",
  path: "/v1/recovery-bundles/needed",
  summary: "List nodes that have no current recovery token",
  description:
    "If such a node loses its identity, only an operator can bring it back. Retired, revoked and quarantined nodes are left out.",
  access: { scope: "nodes:write" },
  query: PageQuery,
  answer: pageOf(z.strictObject({ node_id: Id, node_name: z.string(), last_heartbeat_at: Time.nullable() })),
});
