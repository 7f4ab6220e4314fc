// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.chain(
  check.string(),
  check.maxLength(300, "Too big: expected string to have <=300 characters"),
);
const shared2 = check.nullable(shared1);

export default {
  type: "diag.network_probe",
  summary: "Try the way to the server's endpoints: DNS, TCP, TLS, mTLS, waiting for tasks",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 90,
  expiresAfterSeconds: 120,
  concurrency: 2,
  capabilities: [],
  byHand: true,
  resultBytes: 65536,
  failures: {
    endpoint_unknown: {
      message: "The node's profile has no endpoint of that name.",
      nextStep: "Choose among the names that the profile has, or leave them out to probe all.",
    },
  },
  params: check.of(check.strictObject({
    endpoints: check.optional(check.chain(
      check.array(
        check.chain(
          check.string(),
          check.pattern(/^[a-z][a-z0-9_]{0,31}$/, "the name of an endpoint, such as node_api"),
        ),
        [[16, "Too big: expected array to have <=16 items"]],
      ),
      check.minLength(1, "Too small: expected array to have >=1 items"),
    )),
    hold_seconds: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(25, "Too big: expected number to be <=25"),
      ),
      () => 0,
    ),
  })),
  progress: check.of(check.strictObject({
    done: check.chain(check.number(), check.integer()),
    of: check.chain(check.number(), check.integer()),
  })),
  result: check.of(check.strictObject({
    profile: check.strictObject({name: shared1, version: check.chain(check.number(), check.integer())}),
    ok: check.boolean(),
    endpoints: check.array(check.strictObject({
      name: shared1,
      host: shared1,
      port: check.nullable(check.chain(check.number(), check.integer())),
      ok: check.boolean(),
      hops: check.array(check.strictObject({
        hop: check.oneOf(
          ["dns", "address", "tcp", "tls", "mtls", "task_wait"],
          "Invalid option: expected one of \"dns\"|\"address\"|\"tcp\"|\"tls\"|\"mtls\"|\"task_wait\"",
        ),
        ok: check.boolean(),
        ms: check.chain(check.number(), check.min(0, "Too small: expected number to be >=0")),
        code: check.nullable(check.oneOf(
          [
            "endpoint_invalid",
            "dns_failed",
            "dns_timeout",
            "address_refused",
            "tcp_refused",
            "tcp_timeout",
            "tcp_unreachable",
            "tcp_failed",
            "tls_untrusted",
            "tls_timeout",
            "tls_failed",
            "trust_bundle_missing",
            "mtls_refused",
            "mtls_failed",
            "mtls_timeout",
            "identity_missing",
            "edge_ends_tls",
            "login_page",
            "rate_limited",
            "wrong_listener",
            "idle_cut",
            "wait_failed",
            "wait_timeout",
          ],
          "Invalid option: expected one of \"endpoint_invalid\"|\"dns_failed\"|\"dns_timeout\"|\"address_refused\"|\"tcp_refused\"|\"tcp_timeout\"|\"tcp_unreachable\"|\"tcp_failed\"|\"tls_untrusted\"|\"tls_timeout\"|\"tls_failed\"|\"trust_bundle_missing\"|\"mtls_refused\"|\"mtls_failed\"|\"mtls_timeout\"|\"identity_missing\"|\"edge_ends_tls\"|\"login_page\"|\"rate_limited\"|\"wrong_listener\"|\"idle_cut\"|\"wait_failed\"|\"wait_timeout\"",
        )),
        server_code: check.optional(shared2),
        detail: shared2,
      })),
      addresses: check.array(shared1, [[16, "Too big: expected array to have <=16 items"]]),
      address: shared2,
      certificate: check.nullable(check.strictObject({
        trusted_by: check.nullable(check.oneOf(
          ["trust_bundle", "system"],
          "Invalid option: expected one of \"trust_bundle\"|\"system\"",
        )),
        issuer: shared2,
        not_after: shared2,
        protocol: shared2,
      })),
    })),
  })),
} satisfies CheckedTaskType;
