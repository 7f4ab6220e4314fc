// A process that knows the service token gets a certificate, and an ingress that knows the ingress token gets its
// two. Nothing of a request is looked at before its proof was found right.

import { isIP } from "node:net";
import type { AnswerOf, BodyOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import type { enrollIngress, enrollService } from "@holdfast/contracts/service-endpoints";
import { isSameProof, markOfIngressToken, proofOfAnswer, proofOfRequest } from "@holdfast/service/service-proof";
import type { Authority } from "../identity/authority.ts";
import { readKeyRequest } from "../identity/requests.ts";

/** A request that somebody kept is of no use for longer than clocks may differ. */
const MOST_SKEW_MS = 2 * 60_000;

const hostName = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

/** Undefined: no such token was given to this api, or its CA is gone. */
type Known = { token: string | undefined; authority: Authority | undefined; now: number };

export async function enroll(
  body: BodyOf<typeof enrollService>,
  known: Known,
): Promise<AnswerOf<typeof enrollService>> {
  const { mac, ...request } = body;
  const { token, authority } = proven(request, mac, known);
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
  return { ...identity, mac: proofOfAnswer(token, request.nonce, identity) };
}

export async function enrollAsIngress(
  body: BodyOf<typeof enrollIngress>,
  known: Known & { names: readonly string[] },
): Promise<AnswerOf<typeof enrollIngress>> {
  const { mac, ...request } = body;
  const { token, authority } = proven(request, mac, known, {
    message: "The proof that comes with the request was not made with this server's ingress token.",
    nextStep: "Give the api and `holdfast ingress` the same HOLDFAST_INGRESS_TOKEN; the gateways' is another.",
  });
  const [own, listener] = await Promise.all([readKeyRequest(request.csr), readKeyRequest(request.listener_csr)]);
  const issued = await authority.issueToIngress(
    {
      name: request.name,
      mark: markOfIngressToken(token),
      publicKey: own.publicKey,
      // Ours to say: a certificate for any name it likes could stand in for other listeners of the installation.
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
      nextStep: "Set both clocks right (timedatectl, chronyc); the process asks again by itself.",
    });
  }
  if (!authority) throw new ApiError("ca_unavailable");
  return { token, authority };
}
