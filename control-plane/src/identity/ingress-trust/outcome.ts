// What became of a canary on one way to a node-facing listener. Pure. Only what somebody said about the certificate counts
// as a rejection; whatever else goes wrong on the way says nothing about trust.

import { isCertificatePage, rejectedInHandshake } from "@holdfast/contracts/node/ingress-rejection";
import type { CanaryAnswer } from "@holdfast/service/node-identity/canary";

export type Reply =
  | { kind: "none"; code: string; message: string }
  | {
      kind: "answer";
      status: number;
      text: string;
      /** Why nodes would not trust whoever answers; undefined: they would. */
      untrusted: string | undefined;
    };

export type Outcome =
  /** `ingress`: its name; null: the listener itself. */
  | { state: "accepted"; ingress: string | null }
  | { state: "rejected"; why: string }
  | { state: "unreachable"; why: string };

export function outcomeOf(reply: Reply, canary: { id: string }): Outcome {
  if (reply.kind === "none") {
    if (rejectedInHandshake.test(reply.code)) return rejected(`it ended the TLS handshake: ${reply.code}`);
    return unreachable(reply.message.includes(reply.code) ? reply.message : `${reply.code}: ${reply.message}`);
  }
  const { status, text, untrusted } = reply;
  if (isCertificatePage({ status, text })) return rejected(`it answered HTTP ${status}: ${sentenceOf(text)}`);
  const answer = read(text);
  if (status === 200 && answer?.canary === canary.id) {
    return untrusted === undefined
      ? { state: "accepted", ingress: answer.ingress }
      : unreachable(`nodes do not trust its own certificate: ${untrusted}`);
  }
  if (status === 200 && answer?.certificate === "none") {
    return rejected("it terminates TLS and does not forward the client's certificate");
  }
  if (status === 200 && answer?.certificate === "untrusted") {
    return rejected("the listener behind it does not know the CA that signs certificates of nodes");
  }
  return unreachable(`HTTP ${status}, which is not an answer to a canary`);
}

const rejected = (why: string): Outcome => ({ state: "rejected", why });
const unreachable = (why: string): Outcome => ({ state: "unreachable", why });

/** The title of a page, without its markup. */
function sentenceOf(text: string): string {
  return (/<title>([^<]{1,100})<\/title>/i.exec(text)?.[1] ?? text.slice(0, 100)).replace(/^\d+ /, "").trim();
}

function read(text: string): CanaryAnswer | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("certificate" in value)) return undefined;
    const { certificate, canary, ingress } = value as Record<keyof CanaryAnswer, unknown>;
    return {
      certificate: certificate as CanaryAnswer["certificate"],
      canary: typeof canary === "string" ? canary : null,
      ingress: typeof ingress === "string" ? ingress.slice(0, 63) : null,
    };
  } catch {
    return undefined;
  }
}
