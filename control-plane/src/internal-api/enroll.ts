// Issues a certificate to a process that proves it knows the service token, and two to an ingress that proves it knows the
// ingress token. The proof is verified before anything else in the request is read.

import { isIP } from "node:net";
import type { AnswerOf, BodyOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import type { enrollIngress, enrollService } from "@holdfast/contracts/internal/endpoints";
import { isSameProof, markOfIngressToken, proofOfAnswer, proofOfRequest } from "@holdfast/service/service-proof";
import type { Authority } from "../identity/authority.ts";
import { readKeyRequest } from "../identity/requests.ts";

/** Limits how long a recorded request could be replayed, and how far the clocks may differ. */
const MOST_SKEW_MS = 2 * 60_000;

const hostName = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

/** Undefined: the token is not set on this api, or its CA is missing. */
type Known = { token: string | undefined; authority: Authority | undefined; now: number };

export function enroll(body: BodyOf<typeof enrollService>, known: Known): AnswerOf<typeof enrollService> {
  const { mac, ...request } = body;
  const { token, authority } = proven(request, mac, known);
  const { publicKey } = readKeyRequest(request.csr);
  const names = request.names.filter((name) => isIP(name) !== 0 || hostName.test(name));
  const service = { name: request.service, instanceId: request.instance_id };
  const issued = authority.issueToService({ ...service, names, publicKey }, new Date(known.now));
  const identity = {
    certificate: issued.chain,
    not_after: issued.notAfter.toISOString(),
    trust_bundle: [...authority.trustBundle],
    authorities: [...authority.certificates],
  };
  return { ...identity, mac: proofOfAnswer(token, request.nonce, identity) };
}

export function enrollAsIngress(
  body: BodyOf<typeof enrollIngress>,
  known: Known & { names: readonly string[] },
): AnswerOf<typeof enrollIngress> {
  const { mac, ...request } = body;
  const { token, authority } = proven(request, mac, known, {
    message: "The proof in the request was not made with this server's ingress token.",
    nextStep:
      "Set the same HOLDFAST_INGRESS_TOKEN on the api and on `holdfast ingress`. It is not the service token of the gateways.",
  });
  const own = readKeyRequest(request.csr);
  const listener = readKeyRequest(request.listener_csr);
  const issued = authority.issueToIngress(
    {
      name: request.name,
      mark: markOfIngressToken(token),
      publicKey: own.publicKey,
      // The api chooses the names: a certificate for any name could impersonate other listeners of the installation.
      listener: { names: known.names, publicKey: listener.publicKey },
    },
    new Date(known.now),
  );
  const identity = {
    certificate: issued.chain,
    listener_certificate: issued.listenerChain,
    names: [...known.names],
    not_after: issued.notAfter.toISOString(),
    trust_bundle: [...authority.trustBundle],
  };
  return { ...identity, mac: proofOfAnswer(token, request.nonce, identity) };
}

function proven(
  request: { sent_at: string },
  mac: string,
  { token, authority, now }: Known,
  wrong: { message?: string; nextStep?: string } = {},
): { token: string; authority: Authority } {
  if (token === undefined || !isSameProof(mac, proofOfRequest(token, request))) {
    throw new ApiError("service_token_wrong", wrong);
  }
  if (Math.abs(Date.parse(request.sent_at) - now) > MOST_SKEW_MS) {
    throw new ApiError("service_token_wrong", {
      message: "The clocks of the two processes differ by more than two minutes.",
      nextStep: "Synchronize both clocks (timedatectl, chronyc). The process retries by itself.",
    });
  }
  if (!authority) throw new ApiError("ca_unavailable");
  return { token, authority };
}
