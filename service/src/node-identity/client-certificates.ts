// Which certificate applies to a request: the connection's, or, on the connection of an ingress or, where that is
// allowed, of another gateway, and only there, the one that it forwards. Both are parsed by the same function.

import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { ApiError } from "@holdfast/contracts/errors";
import {
  type GatewayCertificate,
  type IngressCertificate,
  type Issuers,
  type PresentedCertificate,
  readCertificate,
} from "./certificate.ts";
import { handedOver, readHandedOver } from "./handed-over.ts";

export type ClientCertificates = {
  /** Throws when the ingress's certificate is no longer accepted, or when it forwards something else than a certificate. */
  of(request: IncomingMessage): PresentedCertificate;
  /** Whether the connection is from an ingress or a gateway, so that a certificate in a header is not forged. */
  isHandedOver(request: IncomingMessage): boolean;
  /** The instance of the gateway that the connection is from; null: it is from none, or none is trusted here. */
  gatewayOf(request: IncomingMessage): string | null;
  /** The client's certificate in the form of the header, to forward it; undefined: there is none. */
  toForward(request: IncomingMessage): string | undefined;
  /** The name of the ingress that the connection is from; null: the client connects directly. */
  ingressOf(request: IncomingMessage): string | null;
  /** The client's address; an ingress forwards it. */
  addressOf(request: IncomingMessage): string;
};

export type ClientCertificateOptions = {
  /** Undefined: not known yet, so no certificate is trusted. */
  issuers: () => Issuers | undefined;
  /** The mark in certificates of trusted ingresses; undefined: there is no ingress. */
  ingressMark: () => string | undefined;
  /** Gateways may forward certificates of nodes here. Only gateways trust each other with that. */
  trustGateways?: boolean;
  /** Milliseconds, by the server's clock. */
  now: () => number;
};

/** Certificates of nodes behind ingresses: more than one process serves. */
const MOST_REMEMBERED = 20_000;

export function clientCertificates(options: ClientCertificateOptions): ClientCertificates {
  const bySocket = new WeakMap<Socket, PresentedCertificate>();
  /** By digest of the header. Parsed once, as for a connection; verified again on every request. */
  const read = new Map<string, PresentedCertificate>();

  const onConnection = (socket: Socket): PresentedCertificate => {
    const known = bySocket.get(socket);
    if (known) return known;
    const issuers = options.issuers();
    if (!issuers) return { kind: "none" };
    const leaf = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    const presented = readCertificate(leaf, issuers);
    bySocket.set(socket, presented);
    return presented;
  };

  const isCurrent = ({ notBefore, notAfter }: { notBefore: Date; notAfter: Date }): boolean => {
    const now = options.now();
    return now >= notBefore.getTime() && now <= notAfter.getTime();
  };
  const isTrusted = (ingress: IngressCertificate): boolean =>
    isCurrent(ingress) && ingress.mark === options.ingressMark();

  const inHeader = (request: IncomingMessage): PresentedCertificate => {
    const issuers = options.issuers();
    const [value, another] = handedOver(request);
    if (value === undefined || !issuers) return { kind: "none" };
    if (another !== undefined) throw notOne();
    const key = hash("sha256", value, "base64");
    const known = read.get(key);
    if (known) return known;
    const leaf = readHandedOver(value);
    if (!leaf) throw notOne();
    const presented = readCertificate(leaf, issuers);
    // Anyone can create certificates without limit: only those of nodes are cached.
    if (presented.kind === "node") {
      for (const oldest of read.keys().take(read.size >= MOST_REMEMBERED ? 1 : 0)) read.delete(oldest);
      read.set(key, presented);
    }
    return presented;
  };

  const ingressOf = ({ socket }: IncomingMessage): IngressCertificate | undefined => {
    const presented = onConnection(socket);
    return presented.kind === "ingress" && options.ingressMark() !== undefined ? presented : undefined;
  };

  const gatewayOf = ({ socket }: IncomingMessage): GatewayCertificate | undefined => {
    const presented = onConnection(socket);
    return presented.kind === "gateway" && options.trustGateways === true ? presented : undefined;
  };

  return {
    of(request) {
      const gateway = gatewayOf(request);
      const ingress = ingressOf(request);
      if (!gateway && !ingress) return onConnection(request.socket);
      if (gateway && !isCurrent(gateway)) throw expiredGateway();
      if (ingress && !isTrusted(ingress)) throw new ApiError("ingress_identity_refused");
      return inHeader(request);
    },
    isHandedOver: (request) => gatewayOf(request) !== undefined || ingressOf(request) !== undefined,
    gatewayOf: (request) => gatewayOf(request)?.instanceId ?? null,
    toForward(request) {
      if (gatewayOf(request) || ingressOf(request)) return handedOver(request)[0];
      const leaf = request.socket instanceof TLSSocket ? request.socket.getPeerX509Certificate() : undefined;
      return leaf && encodeURIComponent(leaf.toString());
    },
    ingressOf: (request) => ingressOf(request)?.name ?? null,
    addressOf(request) {
      const ingress = ingressOf(request);
      const forwardedFor = request.headers["x-forwarded-for"];
      const trusted = ingress && isTrusted(ingress) && typeof forwardedFor === "string" && isIP(forwardedFor);
      return trusted ? forwardedFor : (request.socket.remoteAddress ?? "unknown");
    },
  };
}

/** Not 401: that would tell the node that its own identity is wrong. */
function expiredGateway(): ApiError {
  return new ApiError("terminal_relay_unavailable", {
    message: "The certificate of the gateway that forwards the stream is not valid at this time.",
  });
}

function notOne(): ApiError {
  return new ApiError("certificate_header_refused", {
    message: "The ingress must forward exactly one certificate, in the format of $ssl_client_escaped_cert.",
  });
}
