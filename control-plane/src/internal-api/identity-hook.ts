// The only source of a calling service's identity. Runs on every request of the internal listener,
// before its body is read, and checks the certificate each time. TLS only supplies the certificate; its verdict is not
// used.

import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { ApiError } from "@holdfast/contracts/errors";
import { CLIENT_AUTH, type Issuers } from "@holdfast/service/node-identity/certificate";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type ServiceIdentity, serviceOf } from "../identity/certificates.ts";

type PresentedCertificate =
  | { service: ServiceIdentity; notBefore: number; notAfter: number }
  | { refused: string };

/** Returns the function with which a handler gets the caller's identity. */
export function identifyServices(
  http: FastifyInstance,
  options: {
    issuers: Issuers;
    /** Routes that a process without a certificate may use, as they were registered. */
    open: ReadonlySet<string>;
    onRefused(code: string): void;
    /** Milliseconds since 1970. */
    now: () => number;
  },
): (request: FastifyRequest) => ServiceIdentity {
  const bySocket = new WeakMap<Socket, PresentedCertificate>();
  const identities = new WeakMap<FastifyRequest, ServiceIdentity>();

  const presentedBy = (socket: Socket): PresentedCertificate => {
    const known = bySocket.get(socket);
    if (known) return known;
    const leaf = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    const presented = readPresented(leaf, options.issuers);
    bySocket.set(socket, presented);
    return presented;
  };

  http.addHook("onRequest", async (request) => {
    // Compares the route's template: the raw URL can be encoded in several ways.
    if (options.open.has(request.routeOptions.url ?? "")) return;
    const judged = judge(presentedBy(request.raw.socket), options.now());
    if ("refused" in judged) {
      const error = new ApiError("service_identity_refused", { message: judged.refused });
      options.onRefused(error.code);
      throw error;
    }
    identities.set(request, judged);
  });

  return (request) => {
    const identity = identities.get(request);
    if (!identity) throw new Error("no hook has identified the service of this request");
    return identity;
  };
}

function readPresented(leaf: X509Certificate | undefined, issuers: Issuers): PresentedCertificate {
  if (!leaf) return { refused: "The connection presents no certificate." };
  if (!issuers.hasIssued(leaf))
    return { refused: "The certificate was issued by a CA that this server does not trust." };
  const service = serviceOf(leaf);
  // Node's `keyUsage` is the extended key usage.
  if (!service || !leaf.keyUsage?.includes(CLIENT_AUTH)) {
    return { refused: "The certificate was not issued to a service." };
  }
  return { service, notBefore: leaf.validFromDate.getTime(), notAfter: leaf.validToDate.getTime() };
}

function judge(presented: PresentedCertificate, now: number): ServiceIdentity | { refused: string } {
  if ("refused" in presented) return presented;
  if (now < presented.notBefore) return { refused: "The service certificate is not valid yet." };
  if (now > presented.notAfter) return { refused: "The service certificate has expired." };
  return presented.service;
}
