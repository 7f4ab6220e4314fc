// The only source of a caller's node, whether it dials us itself or comes by an ingress. Runs on every request
// of the node-facing listener, before its body is read, and never asks whether TLS found the certificate good: a
// resumed session stays "authorized" after its certificate has expired.

import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError, type ErrorCode, errorCatalogue } from "@holdfast/contracts/errors";
import { certificateFaults } from "@holdfast/contracts/errors/nodes";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import { judge, type ShownCertificate } from "@holdfast/service/node-identity/certificate";
import { instanceOf } from "@holdfast/service/node-identity/instance";
import type { Shown } from "@holdfast/service/node-identity/shown";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isRevoked, type NodeDirectory, type Standing } from "../nodes/directory/standings.ts";
import { identityRefusal } from "../nodes/identity/identity-refusal.ts";
import type { NodeRefusal } from "../nodes/identity/refusals.ts";

export type NodeIdentity = {
  id: string;
  orgId: string;
  serial: string;
  instanceId: string;
  bootId: string;
};

export type IdentityOptions = {
  certificates: Pick<Shown, "of">;
  directory: NodeDirectory;
  /** Routes that a machine without a certificate may use, as they were registered. */
  open: ReadonlySet<string>;
  onRefused(code: ErrorCode): void;
  /** A certificate that was made for a node is not accepted. */
  onNodeRefused?: ((refusal: NodeRefusal) => void) | undefined;
  /** An ingress handed over what is no certificate. */
  onForged?: ((forgery: Forgery) => void) | undefined;
  log: Log;
  /** Milliseconds, of our clock. */
  now: () => number;
};

/** An agent has a few, and one more for each task that tells its progress. */
export const MOST_AT_ONCE = 64;

/** Returns the function with which a handler gets the caller's identity. */
export function identifyNodes(
  http: FastifyInstance,
  options: IdentityOptions,
): (request: FastifyRequest) => NodeIdentity {
  const admit = limitEachNode();

  const identify = (
    request: FastifyRequest,
    shown: ShownCertificate,
    standing: Standing | undefined,
  ): NodeIdentity => {
    const serial = "serial" in shown ? shown.serial : "";
    const revoked = standing !== undefined && isRevoked(standing, serial);
    const judged = judge(shown, { now: options.now(), revoked });
    if ("refused" in judged) {
      throw judged.refused === "identity_revoked" ? identityRefusal(standing) : new ApiError(judged.refused);
    }
    if (!standing) {
      throw new ApiError("certificate_unusable", {
        message: "This server has no node of the certificate's name.",
        nextStep: errorCatalogue.certificate_untrusted.nextStep,
      });
    }
    const named = (request.params as { node_id?: string } | undefined)?.node_id;
    if (named !== undefined && named.toLowerCase() !== judged.nodeId) throw new ApiError("node_mismatch");
    return { id: judged.nodeId, orgId: standing.orgId, serial: judged.serial, ...instanceOf(request.headers) };
  };

  http.decorateRequest(identified, null);
  http.addHook("onRequest", (request, reply, done) => {
    // The route's template: what the URL looks like before decoding says nothing.
    if (options.open.has(request.routeOptions.url ?? "")) return done();
    let shown: ShownCertificate = { kind: "none" };
    const refuse = (error: Error) => {
      if (error instanceof ApiError) noteRefusal(options, request, shown, error.code);
      done(error);
    };
    const decide = (standing: Standing | undefined) => {
      try {
        const identity = identify(request, shown, standing);
        admit(identity.id, request.raw, reply.raw);
        (request as Identified)[identified] = identity;
      } catch (error) {
        return refuse(error as Error);
      }
      done();
    };
    try {
      shown = options.certificates.of(request.raw);
    } catch (error) {
      return refuse(error as Error);
    }
    if (shown.kind !== "node") return decide(undefined);
    // Nearly always known: without a promise for each of a thousand requests a second.
    const known = options.directory.known(shown.nodeId);
    if (known) decide(known);
    else options.directory.standing(shown.nodeId).then(decide, refuse);
  });

  return (request) => {
    const identity = (request as Identified)[identified];
    if (!identity) throw new Error("a node's request that no hook has identified");
    return identity;
  };
}

const identified = Symbol("node identity");
type Identified = FastifyRequest & { [identified]?: NodeIdentity | null };

/** Before any body is read: one node that was taken over must not fill the memory that all nodes share. */
function limitEachNode() {
  const underWay = new Map<string, Set<IncomingMessage>>();
  return (nodeId: string, request: IncomingMessage, response: ServerResponse): void => {
    const own = underWay.get(nodeId) ?? new Set();
    // Of requests sent behind each other over one connection, only the first hears that it has closed.
    if (own.size >= MOST_AT_ONCE) for (const one of own) if (one.socket.destroyed) own.delete(one);
    if (own.size >= MOST_AT_ONCE) {
      throw new ApiError("rate_limit_exceeded", {
        message: `This node has ${MOST_AT_ONCE} requests under way already.`,
        headers: { "retry-after": "1" },
      });
    }
    underWay.set(nodeId, own.add(request));
    // The set stays, for the node's next request.
    response.once("close", () => own.delete(request));
  };
}

const certificateCodes: ReadonlySet<ErrorCode> = new Set(certificateFaults);

/** Claims of strangers are counted only: anybody can make as many of them as they like. */
function noteRefusal(
  options: IdentityOptions,
  request: FastifyRequest,
  shown: ShownCertificate,
  code: ErrorCode,
): void {
  options.onRefused(code);
  if (code === "certificate_header_refused")
    options.onForged?.({ address: request.ip, correlationId: request.id });
  const details = { correlation_id: request.id, reason: code };
  if (shown.kind === "node") {
    const { nodeId: node_id, serial } = shown;
    options.log.warn({ ...details, node_id, serial }, "refused a node's request");
    if (certificateCodes.has(code)) {
      options.onNodeRefused?.({ nodeId: node_id, serial, code, correlationId: request.id });
    }
  } else if (code === "ingress_identity_refused") {
    options.log.warn(details, "rejected a request of an ingress whose certificate is no longer accepted");
  } else {
    options.log.debug(details, "refused a request without a node's certificate");
  }
}
