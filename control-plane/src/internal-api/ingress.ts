// How ingresses are recognised.

import { markOfIngressToken } from "@holdfast/service/service-proof";

/** Carried by the certificates of ingresses that are accepted; undefined: there are none. */
export function ingressMarkOf({ ingressToken }: { ingressToken: string | undefined }): string | undefined {
  return ingressToken === undefined ? undefined : markOfIngressToken(ingressToken);
}
