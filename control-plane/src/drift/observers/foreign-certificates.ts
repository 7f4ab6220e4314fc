// Knocking with a certificate that our CA has not signed. If it is one that we issued, before our CA was lost or replaced, it
// proves that the node is there and that its certificate is no longer trusted. Any other is a claim, which anyone can make:
// it is shown with the node that it names, and no cause rests on it.

import { X509Certificate } from "node:crypto";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../../database/connect.ts";
import { networkOf } from "../../mechanisms/rate-limit.ts";
import type { ForeignCertificate } from "../../node-api/identity-hook.ts";
import type { Recorder } from "../evidence/recorder.ts";
import { createLimits } from "./limits.ts";

const MINUTE = 60_000;
/** Each costs a query: as many as a fleet that lost its CA needs, and no more from one place. */
const limits = [
  { most: 300, keyOf: () => "all" },
  { most: 10, keyOf: ({ address }: ForeignCertificate) => `from ${networkOf(address)}` },
  { most: 1, keyOf: ({ nodeId, serial }: ForeignCertificate) => `as ${nodeId ?? serial}` },
];

export function observeForeign(options: {
  recorder: Recorder;
  system: Sql;
  log: Pick<Log, "warn">;
  now?: () => number;
}) {
  const { recorder, system, log, now = Date.now } = options;
  const admits = createLimits(limits, { windowMs: MINUTE, now });
  return (claim: ForeignCertificate): void => {
    if (!admits(claim)) return;
    const observedAt = new Date(now());
    issuedBefore(system, claim).then(
      (issued) => {
        const nodeId = issued?.node_id ?? claim.nodeId;
        if (nodeId === undefined || issued?.is_current === false) return;
        const { serial, address, correlationId } = claim;
        const common = {
          nodeId,
          kind: "refusal",
          value: "certificate_untrusted",
          observedAt,
          correlationId,
        } as const;
        const detail = { endpoint: "node_facing", issuer: issued ? "earlier" : "unknown", serial, address };
        const text = "Somebody presents a certificate of an unknown issuer for this node.";
        recorder.observe(nodeId, [
          issued
            ? { ...common, observer: "control_plane", detail }
            : { ...common, key: "unknown_issuer", observer: "control_plane", detail: { ...detail, text } },
        ]);
      },
      (error: unknown) => log.warn({ err: error }, "could not look up a certificate that was refused"),
    );
  };
}

type IssuedBefore = { node_id: string; chain: string; is_current: boolean };

/** The very certificate that we issued, not only one with its number. */
async function issuedBefore(
  system: Sql,
  { serial, sha256 }: ForeignCertificate,
): Promise<IssuedBefore | undefined> {
  const [row] = await system<IssuedBefore[]>`
    SELECT node_id, chain, revoked_at IS NULL AND not_after > now() AS is_current FROM node_certificates
    WHERE serial = ${serial}`;
  return row && new X509Certificate(row.chain).fingerprint256 === sha256 ? row : undefined;
}
