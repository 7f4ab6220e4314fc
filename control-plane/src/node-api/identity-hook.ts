// The only source of a caller's node, whether it connects directly or through an ingress. Runs on every request
// of the node-facing listener, before its body is read, and never relies on TLS to have verified the certificate: a
// resumed session stays "authorized" after its certificate has expired.

import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError, type ErrorCode, errorCatalogue } from "@holdfast/contracts/errors";
import { certificateFaults } from "@holdfast/contracts/errors/nodes";
import { RECEIVED_SERIAL } from "@holdfast/contracts/node/limits";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import { judge, type PresentedCertificate } from "@holdfast/service/node-identity/certificate";
import type { ClientCertificates } from "@holdfast/service/node-identity/client-certificates";
import { instanceOf } from "@holdfast/service/node-identity/instance";
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
  /** That the node connects through; null: it connects directly. */
  ingress: string | null;
};

export type ForeignCertificate = {
  /** The node that it names, if any. */
  nodeId: string | undefined;
  serial: string;
  sha256: string;
  /** Of the client. */
  address: string;
  correlationId: string;
};

export type IdentityOptions = {
  certificates: Pick<ClientCertificates, "of" | "addressOf" | "ingressOf">;
  directory: NodeDirectory;
  /** Routes that a machine without a certificate may use, as they were registered. */
  open: ReadonlySet<string>;
  onRefused(code: ErrorCode): void;
  /** A certificate that was made for a node is not accepted. */
  onNodeRefused?: ((refusal: NodeRefusal) => void) | undefined;
  /** A certificate of an unknown issuer was refused. Anyone can cause as many as they like. */
  onForeign?: ((claim: ForeignCertificate) => void) | undefined;
  /** An ingress forwarded something else than a certificate. */
  onForged?: ((forgery: Forgery) => void) | undefined;
  log: Log;
  /** Milliseconds, by the server's clock. */
  now: () => number;
};

/** An agent has a few requests open, and one more for each task that reports progress. */
export const MOST_AT_ONCE = 64;

export type Identification = {
  /** For the handler of a request. */
  identityOf(request: FastifyRequest): NodeIdentity;
  /** For an upgrade, for which no hook runs. Rejects with the ApiError to respond with. */
  ofUpgrade(request: IncomingMessage, named: string, correlationId: string): Promise<IdentifiedUpgrade>;
};

export type IdentifiedUpgrade = { identity: NodeIdentity; presented: PresentedCertificate };

export function identifyNodes(http: FastifyInstance, options: IdentityOptions): Identification {
  const admit = limitEachNode();

  const identify = (
    { request, named }: { request: IncomingMessage; named: string | undefined },
    presented: PresentedCertificate,
    standing: Standing | undefined,
  ): NodeIdentity => {
    const serial = "serial" in presented ? presented.serial : "";
    const revoked = standing !== undefined && isRevoked(standing, serial);
    const judged = judge(presented, { now: options.now(), revoked });
    if ("refused" in judged) {
      const refusal =
        judged.refused === "identity_revoked" ? identityRefusal(standing) : new ApiError(judged.refused);
      throw ofCertificate(refusal, presented);
    }
    if (!standing) {
      throw new ApiError("certificate_unusable", {
        details: received(presented),
        message: "The certificate names a node that this server does not have.",
        nextStep: errorCatalogue.certificate_untrusted.nextStep,
      });
    }
    if (named !== undefined && named.toLowerCase() !== judged.nodeId) {
      throw ofCertificate(new ApiError("node_mismatch"), presented);
    }
    const { nodeId: id, serial: used } = judged;
    const ingress = options.certificates.ingressOf(request);
    return { id, orgId: standing.orgId, serial: used, ...instanceOf(request.headers), ingress };
  };

  http.decorateRequest(identified, null);
  http.addHook("onRequest", (request, reply, done) => {
    // The route's template, because an undecoded URL can be spelled in many ways.
    if (options.open.has(request.routeOptions.url ?? "")) return done();
    let presented: PresentedCertificate = { kind: "none" };
    const refuse = (error: Error) => {
      if (error instanceof ApiError) {
        const from = { raw: request.raw, address: request.ip, correlationId: request.id };
        noteRefusal(options, from, presented, error.code);
      }
      done(error);
    };
    const decide = (standing: Standing | undefined) => {
      try {
        const named = (request.params as { node_id?: string } | undefined)?.node_id;
        const identity = identify({ request: request.raw, named }, presented, standing);
        admit(identity.id, request.raw, reply.raw);
        (request as Identified)[identified] = identity;
      } catch (error) {
        return refuse(error as Error);
      }
      done();
    };
    try {
      presented = options.certificates.of(request.raw);
    } catch (error) {
      return refuse(error as Error);
    }
    if (presented.kind !== "node") return decide(undefined);
    // Nearly always known: saves a promise for each of a thousand requests per second.
    const known = options.directory.knownOf(presented);
    if (known) decide(known);
    else options.directory.standingOf(presented).then(decide, refuse);
  });

  return {
    identityOf(request) {
      const identity = (request as Identified)[identified];
      if (!identity) throw new Error("a node's request was not identified by the hook");
      return identity;
    },
    async ofUpgrade(request, named, correlationId) {
      let presented: PresentedCertificate = { kind: "none" };
      try {
        presented = options.certificates.of(request);
        const standing = presented.kind === "node" ? await options.directory.standingOf(presented) : undefined;
        return { identity: identify({ request, named }, presented, standing), presented };
      } catch (error) {
        const address = request.socket.remoteAddress ?? "unknown";
        const from = { raw: request, address, correlationId };
        if (error instanceof ApiError) noteRefusal(options, from, presented, error.code);
        throw error;
      }
    },
  };
}

/** Which certificate arrived: whoever presented another one learns that something in between terminates TLS. */
function received(presented: PresentedCertificate): Record<string, string | null> {
  return { [RECEIVED_SERIAL]: "serial" in presented ? presented.serial : null };
}

const ofCertificate = ({ code, message, nextStep }: ApiError, presented: PresentedCertificate) =>
  new ApiError(code, { message, nextStep, details: received(presented) });

const identified = Symbol("node identity");
type Identified = FastifyRequest & { [identified]?: NodeIdentity | null };

/** Before any body is read: one compromised node must not exhaust the memory that all nodes share. */
function limitEachNode() {
  const inProgress = new Map<string, Set<IncomingMessage>>();
  return (nodeId: string, request: IncomingMessage, response: ServerResponse): void => {
    const own = inProgress.get(nodeId) ?? new Set();
    // Of requests sent behind each other over one connection, only the first gets the close event.
    if (own.size >= MOST_AT_ONCE) for (const one of own) if (one.socket.destroyed) own.delete(one);
    if (own.size >= MOST_AT_ONCE) {
      throw new ApiError("rate_limit_exceeded", {
        message: `This node already has ${MOST_AT_ONCE} requests in progress.`,
        headers: { "retry-after": "1" },
      });
    }
    inProgress.set(nodeId, own.add(request));
    // The set stays, for the node's next request.
    response.once("close", () => own.delete(request));
  };
}

const certificateCodes: ReadonlySet<ErrorCode> = new Set(certificateFaults);

/** Refusals without a node's certificate are not logged: anyone can cause as many as they like. */
function noteRefusal(
  options: IdentityOptions,
  { raw, ...request }: { raw: IncomingMessage; address: string; correlationId: string },
  presented: PresentedCertificate,
  code: ErrorCode,
): void {
  const { correlationId } = request;
  options.onRefused(code);
  if (code === "certificate_header_refused") options.onForged?.(request);
  const details = { correlation_id: correlationId, reason: code };
  if (presented.kind === "node") {
    const { nodeId: node_id, serial } = presented;
    options.log.warn({ ...details, node_id, serial }, "refused a node's request");
    if (certificateCodes.has(code)) {
      options.onNodeRefused?.({ nodeId: node_id, serial, code, correlationId });
    }
  } else if (code === "ingress_identity_refused") {
    options.log.warn(details, "rejected a request of an ingress whose certificate is no longer accepted");
  } else {
    if (presented.kind === "foreign") {
      const { kind: _, ...claimed } = presented;
      options.onForeign?.({ ...claimed, address: options.certificates.addressOf(raw), correlationId });
    }
    options.log.debug(details, "refused a request without a node's certificate");
  }
}
