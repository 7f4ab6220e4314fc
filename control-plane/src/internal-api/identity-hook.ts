// The only source of a calling service's identity. Runs on every request of the internal listener,
// before its body is read, and judges the certificate anew each time: TLS is asked for it, never for
// its opinion of it.

import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { ApiError } from "@holdfast/contracts/errors";
import { CLIENT_AUTH, type Issuers } from "@holdfast/service/node-identity/certificate";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type ServiceIdentity, serviceOf } from "../identity/certificates.ts";

type Shown = { service: ServiceIdentity; notBefore: number; notAfter: number } | { refused: string };

/** Returns the function with which a handler gets the caller's identity. */
export function identifyServices(
  http: FastifyInstance,
  options: {
    issuers: Issuers;
    /** Routes that a process without a certificate may use, as they were registered. */
    open: ReadonlySet<string>;
    onRefused(code: string): void;
    /** Milliseconds, of our clock. */
    now: () => number;
  },
): (request: FastifyRequest) => ServiceIdentity {
  const shownOn = new WeakMap<Socket, Shown>();
  const identities = new WeakMap<FastifyRequest, ServiceIdentity>();

  const shownBy = (socket: Socket): Shown => {
    const present = shownOn.get(socket);
    if (present) return present;
    const leaf = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    const shown = readShown(leaf, options.issuers);
    shownOn.set(socket, shown);
    return shown;
  };

  http.addHook("onRequest", async (request) => {
    // The route's template: what the URL looks like before decoding says nothing.
    if (options.open.has(request.routeOptions.url ?? "")) return;
    const judged = judge(shownBy(request.raw.socket), options.now());
    if ("refused" in judged) {
      const error = new ApiError("service_identity_refused", { message: judged.refused });
      options.onRefused(error.code);
      throw error;
    }
    identities.set(request, judged);
  });

  return (request) => {
    const identity = identities.get(request);
    if (!identity) throw new Error("a service's request that no hook has identified");
    return identity;
  };
}

function readShown(leaf: X509Certificate | undefined, issuers: Issuers): Shown {
  if (!leaf) return { refused: "The connection shows no certificate." };
  if (!issuers.hasIssued(leaf)) return { refused: "The certificate is of a CA that this server does not know." };
  const service = serviceOf(leaf);
  // Node's `keyUsage` is the extended key usage.
  if (!service || !leaf.keyUsage?.includes(CLIENT_AUTH)) {
    return { refused: "The certificate was not made for a service." };
  }
  return { service, notBefore: leaf.validFromDate.getTime(), notAfter: leaf.validToDate.getTime() };
}

function judge(shown: Shown, now: number): ServiceIdentity | { refused: string } {
  if ("refused" in shown) return shown;
  if (now < shown.notBefore) return { refused: "The service certificate is not valid yet." };
  if (now > shown.notAfter) return { refused: "The service certificate has expired." };
  return shown.service;
}
