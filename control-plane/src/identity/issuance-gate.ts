// Whether certificates for nodes may be issued now. Everything that issues one asks here first: enrollment, renewal and
// recovery. In memory, because a fleet that comes back asks thousands of times; each api refreshes it from what all of them
// have stored. What is not known stops nothing.

import { ApiError, errorCatalogue } from "@holdfast/contracts/errors";
import type { Log } from "@holdfast/service/log";
import { type CaTrust, THIS_API } from "./ingress-trust/decide.ts";

export type IssuanceGate = {
  /** Throws `ca_ingress_mismatch` while an ingress does not accept what the CA signs. */
  check(): void;
  set(trust: CaTrust): void;
};

/** `stored`: what replicas have seen so far. */
export function createIssuanceGate(stored: CaTrust, log: Log): IssuanceGate {
  let trust = stored;
  let reported: CaTrust["state"] | undefined;
  return {
    check() {
      if (trust.state !== "mismatch") return;
      const own = trust.at.find(({ url }) => url === THIS_API);
      throw new ApiError("ca_ingress_mismatch", {
        details: { at: [...new Set(trust.at.map(({ url }) => url))] },
        ...(own
          ? { message: `${own.why} No certificates are issued.`, nextStep: errorCatalogue.ca_unavailable.nextStep }
          : {}),
      });
    },
    set(next) {
      trust = next;
      if (next.state === reported) return;
      reported = next.state;
      report(next, log);
    },
  };
}

function report(trust: CaTrust, log: Log): void {
  if (trust.state === "agrees") {
    log.info("the published address of the node-facing API accepts certificates of the signing CA");
  } else if (trust.state === "mismatch") {
    log.error(
      { at: trust.at },
      "certificates of the signing CA are rejected: none are issued until this is repaired",
    );
  } else {
    log.warn({ at: trust.at }, "no canary certificate reached the node-facing API by its published address");
  }
}
