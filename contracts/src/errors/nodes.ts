// Nodes: their enrollment, their certificates, and what state they are in.

import { identityReasons } from "../reasons/node/identity.ts";
import { type ErrorEntry, wordsOf } from "./entry.ts";

export const nodeErrors = {
  enrollment_token_unknown: {
    status: 401,
    message: "This enrollment token is not known to this server.",
    retryable: false,
    nextStep:
      "Copy the whole token, or create a new one: `holdfast node token create`. On a VM host, compare NODE_AGENT_HOST_ID and NODE_AGENT_BOOTSTRAP_TOKEN with the host record; `holdfast host rotate-token <host>` makes a new token.",
  },
  host_unknown: {
    status: 404,
    message: "There is no host record with this id.",
    retryable: false,
    nextStep:
      "Compare NODE_AGENT_HOST_ID on the host with `holdfast node list`, or create the record with its token: `holdfast node token create --bootstrap --node <id>`. In development only, ALLOW_UNKNOWN_HOST_REGISTRATION=true on the api lets unknown hosts register.",
  },
  host_values_invalid: {
    status: 422,
    message: "The host cannot be registered with these values.",
    retryable: false,
    nextStep:
      "Correct the field in details on the host: a VM host has a minimum of ram_total_mb >= 256. The agent's log has this response.",
  },
  enrollment_token_revoked: {
    status: 410,
    message: "This enrollment token was revoked.",
    retryable: false,
    nextStep: "Ask the operator why, or create a new one: `holdfast node token create`.",
  },
  enrollment_token_used: {
    status: 410,
    message: "This enrollment token was already used by another key. Each token works once.",
    retryable: false,
    nextStep:
      "Create a new one: `holdfast node token create`. If you did not use it, check in the audit trail who did.",
  },
  enrollment_token_expired: {
    status: 410,
    message: "This enrollment token has expired.",
    retryable: false,
    nextStep: "Create a new one: `holdfast node token create`. The option `--expires` makes it valid for longer.",
  },
  enrollment_token_wrong_node: {
    status: 403,
    message: "This enrollment token was created for another node.",
    retryable: false,
    nextStep:
      "Use it on the node that it was created for, or create one for this node: `holdfast node token create --node <id>`.",
  },
  recovery_token_unknown: {
    status: 401,
    message: "This recovery token is not known to this server.",
    retryable: false,
    nextStep: "Enroll the node again: `holdfast node token create --node <id>`.",
  },
  recovery_token_expired: {
    status: 410,
    message: "This recovery token is too old.",
    retryable: false,
    nextStep: "Enroll the node again: `holdfast node token create --node <id>`.",
  },
  recovery_token_superseded: {
    status: 409,
    message: "The node has used a newer recovery token than this one.",
    retryable: false,
    nextStep:
      "If this machine was restored from a snapshot, enroll the node again: `holdfast node token create --node <id>`. If it is a copy of the node, remove the copy.",
  },
  recovery_token_used: {
    status: 410,
    message: "This recovery token was already used with another key.",
    retryable: false,
    nextStep:
      "Enroll the node again: `holdfast node token create --node <id>`. If nobody else should have this token, look in the audit trail for who used it.",
  },
  recovery_token_revoked: {
    status: 410,
    message: "This recovery token was revoked.",
    retryable: false,
    nextStep: "Enroll the node again: `holdfast node token create --node <id>`.",
  },
  recovery_profile_mismatch: {
    status: 403,
    message: "This recovery token was issued for another environment than this server's.",
    retryable: false,
    nextStep:
      "Check the recovery address on the host. If the address is right, enroll the node again: `holdfast node token create --node <id>`.",
  },
  recovery_disabled: {
    status: 403,
    message: "Automatic recovery is switched off on this server.",
    retryable: false,
    nextStep:
      "Enroll the node again: `holdfast node token create --node <id>`. The setting is HOLDFAST_NODE_AUTOMATIC_RECOVERY.",
  },
  recovery_not_needed: {
    status: 409,
    message: "An agent is connected as this node right now.",
    retryable: false,
    nextStep:
      "If this is the only machine with this identity, it is accepted as soon as its old connection has ended. Otherwise remove the copy.",
  },
  bundle_unknown: {
    status: 401,
    message: "This recovery bundle is not one of this server, or not for this node.",
    retryable: false,
    nextStep: "Create one for this node: `holdfast node bundle create <node>`.",
  },
  bundle_expired: {
    status: 410,
    message: "This recovery bundle has expired.",
    retryable: false,
    nextStep:
      "Create a new one: `holdfast node bundle create <node>`. The option `--expires` makes it valid for longer.",
  },
  bundle_used: {
    status: 410,
    message: "This recovery bundle was already used, with another key. Each bundle works once.",
    retryable: false,
    nextStep:
      "Create a new one: `holdfast node bundle create <node>`. If nobody else should have this bundle, look in the audit trail for who used it.",
  },
  bundle_revoked: {
    status: 410,
    message: "This recovery bundle was revoked, or the node got another identity since.",
    retryable: false,
    nextStep: "If the node still needs one, create a new bundle: `holdfast node bundle create <node>`.",
  },
  node_quarantined: { status: 403, retryable: false, ...wordsOf(identityReasons.node_quarantined) },
  host_clock_skew: {
    status: 409,
    message: "The clock of this host differs from the server's by more than a minute. Nothing was issued.",
    retryable: false,
    nextStep: "Synchronize the time on the host (`timedatectl`). The agent goes on by itself.",
  },
  csr_invalid: {
    status: 400,
    message: "The certificate request is not a signed PKCS#10 request for an acceptable key.",
    retryable: false,
    nextStep: "Send a PEM request for a P-256 key, signed with that key. The agent sends one.",
  },
  ca_unavailable: {
    status: 503,
    message: "This server has nodes, but not the CA that they trust. It issues no certificates.",
    retryable: true,
    nextStep: "Start the api with the database and the KEK that it had before. A new CA would cut off every node.",
  },
  ca_ingress_mismatch: {
    status: 503,
    message:
      "Certificates of this server's CA are rejected on the way to it, so it issues none until that is repaired.",
    retryable: true,
    nextStep:
      "The operator repairs the ingress first: run `holdfast ingress --once` beside it, then reload it. `holdfast status` names the address. Agents retry.",
  },
  server_clock_skew: {
    status: 503,
    message: "The clocks of this api and of its database differ by more than a minute. It issues no certificates.",
    retryable: true,
    nextStep: "Synchronize the time on both hosts (`timedatectl`). Agents retry.",
  },
  certificate_missing: {
    status: 401,
    message: "The connection has no client certificate.",
    retryable: false,
    nextStep: "Agents present theirs; enroll one with `holdfast agent join`. People use the public API.",
  },
  certificate_untrusted: {
    status: 401,
    message: "The client certificate was not issued by this server's CA.",
    retryable: false,
    nextStep:
      "Enroll the machine with this server: create a token with `holdfast node token create`, then run `holdfast agent join --force` with it on the machine.",
  },
  certificate_unusable: {
    status: 401,
    message: "The client certificate was issued by this server's CA, but not for a node.",
    retryable: false,
    nextStep: "Use the certificate that the node was enrolled with.",
  },
  certificate_not_yet_valid: {
    status: 401,
    message: "The client certificate is not valid yet.",
    retryable: false,
    nextStep: "Compare the clocks of node and server and synchronize them first. Then try again.",
  },
  cert_expired: { status: 401, retryable: false, ...wordsOf(identityReasons.cert_expired) },
  identity_revoked: { status: 401, retryable: false, ...wordsOf(identityReasons.identity_revoked) },
  identity_retired: { status: 401, retryable: false, ...wordsOf(identityReasons.identity_retired) },
  /** The certificate ended, not the identity: unlike a revoked node, this one may recover. */
  certificate_replaced: {
    status: 401,
    message: "This certificate was replaced when the node was enrolled again.",
    retryable: false,
    nextStep: identityReasons.auth_failed.nextStep,
  },
  certificate_header_refused: {
    status: 403,
    message: "The request has a certificate in a header, which only an ingress of this installation may send.",
    retryable: false,
    nextStep:
      "Connect with the certificate itself. A proxy in front needs an ingress certificate, and must set the header once: deploy/nginx shows how.",
  },
  ingress_identity_refused: {
    status: 503,
    message: "The certificate of the ingress in front of this server is no longer accepted.",
    retryable: true,
    nextStep:
      "The operator checks `holdfast ingress` beside the proxy: while it runs with the current HOLDFAST_INGRESS_TOKEN, it renews the certificate.",
  },
  node_mismatch: {
    status: 403,
    message: "The certificate belongs to another node than the one in the path.",
    retryable: false,
    nextStep: "An agent may only use the path of its own node. Check the node id in its state directory.",
  },
  node_change_refused: {
    status: 409,
    message: "The node's current state does not allow this change.",
    retryable: false,
    nextStep: "Details name the state. The API reference says which change is possible in which state.",
  },
  node_retired: {
    status: 409,
    message: "The node is retired, which cannot be undone.",
    retryable: false,
    nextStep: identityReasons.identity_retired.nextStep,
  },
  node_not_active: {
    status: 409,
    message: "The node takes no new work in its current state.",
    retryable: false,
    nextStep:
      "Choose another node, or reactivate this one: `holdfast node reactivate <id>`. Details name its state.",
  },
  service_token_wrong: {
    status: 401,
    message: "The proof in the request was not made with this server's service token, or is too old.",
    retryable: false,
    nextStep: "Give the api and the gateway the same HOLDFAST_SERVICE_TOKEN, and synchronize their clocks.",
  },
  service_identity_refused: {
    status: 401,
    message: "The connection has no service certificate that is accepted here.",
    retryable: false,
    nextStep: "Only Holdfast's own processes use this listener. Restart the process: it gets a new certificate.",
  },
} as const satisfies Record<string, ErrorEntry>;

/** A known node presented a certificate, and the certificate itself is at fault. */
export const certificateFaults = [
  "certificate_not_yet_valid",
  "cert_expired",
  "identity_revoked",
  "identity_retired",
  "certificate_replaced",
] as const satisfies readonly (keyof typeof nodeErrors)[];
