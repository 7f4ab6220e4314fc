// Which certificate applies to a request: the connection's, or, on the connection of an
// ingress and only there, the one that it forwards. Both are parsed by the same function.

import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { ApiError } from "@holdfast/contracts/errors";
import { type Issuers, readShown, type ShownByIngress, type ShownCertificate } from "./certificate.ts";
import { handedOver, readHandedOver } from "./handed-over.ts";

export type Shown = {
  /** Throws when the ingress's certificate is no longer accepted, or when it forwards something else than a certificate. */
  of(request: IncomingMessage): ShownCertificate;
  /** The connection is one of an ingress: a certificate in a header is not forged. */
  isHandedOver(request: IncomingMessage): boolean;
  /** The client's address; an ingress forwards it. */
  addressOf(request: IncomingMessage): string;
};

export type ShownOptions = {
  /** Undefined: not known yet, and nobody is trusted. */
  issuers: () => Issuers | undefined;
  /** What the certificates of ingresses that count carry; undefined: there is no ingress. */
  ingressMark: () => string | undefined;
  /** Milliseconds, of our clock. */
  now: () => number;
};

/** Of nodes behind ingresses: more than one process serves. */
const MOST_REMEMBERED = 20_000;

export function shownCertificates(options: ShownOptions): Shown {
  const shownOn = new WeakMap<Socket, ShownCertificate>();
  /** By digest of the header. What it says is read once, like that of a connection; it is judged on every request. */
  const read = new Map<string, ShownCertificate>();

  const onConnection = (socket: Socket): ShownCertificate => {
    const present = shownOn.get(socket);
    if (present) return present;
    const issuers = options.issuers();
    if (!issuers) return { kind: "none" };
    const leaf = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    const shown = readShown(leaf, issuers);
    shownOn.set(socket, shown);
    return shown;
  };

  const counts = ({ mark, notBefore, notAfter }: ShownByIngress): boolean => {
    const now = options.now();
    return now >= notBefore.getTime() && now <= notAfter.getTime() && mark === options.ingressMark();
  };

  const inHeader = (request: IncomingMessage): ShownCertificate => {
    const issuers = options.issuers();
    const [value, another] = handedOver(request);
    if (value === undefined || !issuers) return { kind: "none" };
    if (another !== undefined) throw notOne();
    const key = hash("sha256", value, "base64");
    const known = read.get(key);
    if (known) return known;
    const leaf = readHandedOver(value);
    if (!leaf) throw notOne();
    const shown = readShown(leaf, issuers);
    // Strangers can make as many as they like: only nodes are remembered.
    if (shown.kind === "node") {
      for (const oldest of read.keys().take(read.size >= MOST_REMEMBERED ? 1 : 0)) read.delete(oldest);
      read.set(key, shown);
    }
    return shown;
  };

  const ingressOf = ({ socket }: IncomingMessage): ShownByIngress | undefined => {
    const shown = onConnection(socket);
    return shown.kind === "ingress" && options.ingressMark() !== undefined ? shown : undefined;
  };

  return {
    of(request) {
      const ingress = ingressOf(request);
      if (!ingress) return onConnection(request.socket);
      if (!counts(ingress)) throw new ApiError("ingress_identity_refused");
      return inHeader(request);
    },
    isHandedOver: (request) => ingressOf(request) !== undefined,
    addressOf(request) {
      const ingress = ingressOf(request);
      const forwardedFor = request.headers["x-forwarded-for"];
      const trusted = ingress && counts(ingress) && typeof forwardedFor === "string" && isIP(forwardedFor);
      return trusted ? forwardedFor : (request.socket.remoteAddress ?? "unknown");
    },
  };
}

function notOne(): ApiError {
  return new ApiError("certificate_header_refused", {
    message: "The ingress must hand over exactly one certificate, as $ssl_client_escaped_cert has it.",
  });
}
