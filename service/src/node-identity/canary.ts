// What a node-facing listener says about the certificate that reached it. An api asks this through each address that nodes
// use, with a certificate made for it: so it learns whether what stands in between accepts what its CA signs. Open to
// anybody, because a request whose certificate was dropped on the way must be answered, too; it says nothing about nodes.

import type { IncomingMessage } from "node:http";
import type { PresentedCertificate } from "./certificate.ts";
import type { ClientCertificates } from "./client-certificates.ts";

export const CANARY_PATH = "/internal/v1/canary";

export type CanaryAnswer = {
  /** `untrusted`: this listener does not know its issuer. */
  certificate: "canary" | "none" | "untrusted" | "other";
  /** The id in the canary's name; null for any other certificate. */
  canary: string | null;
  /** That the request came through; null: it came directly. */
  ingress: string | null;
};

export function answerCanary(
  certificates: Pick<ClientCertificates, "of" | "ingressOf">,
  request: IncomingMessage,
): CanaryAnswer {
  const presented = certificates.of(request);
  return {
    certificate: wordOf(presented),
    canary: presented.kind === "canary" ? presented.id : null,
    ingress: certificates.ingressOf(request),
  };
}

function wordOf({ kind }: PresentedCertificate): CanaryAnswer["certificate"] {
  if (kind === "canary" || kind === "none") return kind;
  return kind === "foreign" ? "untrusted" : "other";
}
