// Who may do what: sign-in, permissions, links, members and limits.

import type { ErrorEntry } from "./entry.ts";

export const peopleErrors = {
  organization_required: {
    status: 400,
    message: "You belong to several organizations, and the request names none.",
    retryable: false,
    nextStep: "Send the organization's id in the header `x-org-id`. GET /v1/me lists yours.",
  },
  unauthenticated: {
    status: 401,
    message: "The request has no valid session or token.",
    retryable: false,
    nextStep: "Sign in, or send a valid API token as `authorization: Bearer …`. A token may have been revoked.",
  },
  sign_in_failed: {
    status: 401,
    message: "Email or password is wrong.",
    retryable: false,
    nextStep:
      "Check both and try again. The operator can create a link to set a new password: `holdfast admin link --email …`.",
  },
  forbidden: {
    status: 403,
    message: "Your role or the token's scopes do not allow this.",
    retryable: false,
    nextStep: "Ask an owner of the organization for the permission named in details.",
  },
  origin_refused: {
    status: 403,
    message: "The request comes from another site.",
    retryable: false,
    nextStep: "Use the page that this server serves, or an API token instead of the session cookie.",
  },
  last_owner: {
    status: 409,
    message: "This is the organization's last owner.",
    retryable: false,
    nextStep: "Make another member an owner first.",
  },
  quota_exceeded: {
    status: 409,
    message: "The limit of allocations is reached.",
    retryable: false,
    nextStep: "Release an allocation that is no longer needed, or ask an administrator to raise the limit.",
  },
  link_unknown: {
    status: 410,
    message: "This link is not valid, or it was replaced by a newer one.",
    retryable: false,
    nextStep: "Copy the whole link, or ask for a new one (`holdfast admin link` for administrators).",
  },
  link_used: {
    status: 410,
    message: "This link was already used. Each link works once.",
    retryable: false,
    nextStep: "Sign in with your password, or ask for a new link (`holdfast admin link` for administrators).",
  },
  link_expired: {
    status: 410,
    message: "This link has expired.",
    retryable: false,
    nextStep: "Ask for a new link (`holdfast admin link` for administrators).",
  },
} as const satisfies Record<string, ErrorEntry>;
