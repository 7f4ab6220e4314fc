// Header names that are part of the contract.

export const CORRELATION_HEADER = "x-correlation-id";
export const ORG_HEADER = "x-org-id";
export const IDEMPOTENCY_HEADER = "idempotency-key";
/** Set to `true` on an answer that repeats an earlier one for the same idempotency key. */
export const REPLAYED_HEADER = "idempotency-replayed";

/** On every answer of the terminal gateway: whoever finds it missing has reached something else. */
export const LISTENER_HEADER = "x-holdfast-listener";
/** To browsers and the command line, and to nodes. */
export const gatewayListeners = { public: "terminal", node: "node-terminal" } as const;

/** A correlation id from outside is taken over only in this form, because it is logged and stored. */
export const correlationIdForm = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;
export const idempotencyKeyForm = /^[\x21-\x7e]{1,128}$/;

/** Carries the certificate that a node presented to an ingress: PEM, URL-escaped. Only an ingress may send it. */
export const CERTIFICATE_HEADER = "x-holdfast-client-certificate";
