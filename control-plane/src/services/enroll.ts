// A process that knows the service token gets a certificate. Nothing of the request is looked at
// before its proof was found right.

import { isIP } from "node:net";
import type { AnswerOf, BodyOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import type { enrollService } from "@holdfast/contracts/service-endpoints";
import { isSameProof, proofOfAnswer, proofOfRequest } from "@holdfast/service/service-proof";
import type { Authority } from "../identity/authority.ts";
import { readKeyRequest } from "../identity/requests.ts";

/** A request that somebody kept is of no use for longer than clocks may differ. */
const MOST_SKEW_MS = 2 * 60_000;

const hostName = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

export async function enroll(
  body: BodyOf<typeof enrollService>,
  known: { token: string; authority: Authority | undefined; now: number },
): Promise<AnswerOf<typeof enrollService>> {
  const { mac, ...request } = body;
  if (!isSameProof(mac, proofOfRequest(known.token, request))) throw new ApiError("service_token_wrong");
  if (Math.abs(Date.parse(request.sent_at) - known.now) > MOST_SKEW_MS) {
    throw new ApiError("service_token_wrong", {
      message: "The clocks of the two processes differ by more than two minutes.",
      nextStep: "Set both clocks right (timedatectl, chronyc); the process asks again by itself.",
    });
  }
  const { authority } = known;
  if (!authority) throw new ApiError("ca_unavailable");
  const { publicKey } = await readKeyRequest(request.csr);
  const names = request.names.filter((name) => isIP(name) !== 0 || hostName.test(name));
  const service = { name: request.service, instanceId: request.instance_id };
  const issued = await authority.issueToService({ ...service, names, publicKey }, new Date(known.now));
  const identity = {
    certificate: issued.chain,
    not_after: issued.notAfter.toISOString(),
    trust_bundle: [...authority.trustBundle],
    authorities: [...authority.certificates],
  };
  return { ...identity, mac: proofOfAnswer(known.token, request.nonce, identity) };
}
