// Receivers of messages about incidents.

import type { ErrorEntry } from "./entry.ts";

export const notifyErrors = {
  receiver_address_refused: {
    status: 400,
    message: "Messages are not sent to this address.",
    retryable: false,
    nextStep:
      "Use a public https:// URL without a password in it. The operator of the installation can allow private addresses with HOLDFAST_NOTIFY_ALLOW_PRIVATE.",
  },
  mail_not_configured: {
    status: 409,
    message: "This installation cannot send mail.",
    retryable: false,
    nextStep:
      "Ask the operator of the installation to set HOLDFAST_SMTP_HOST and HOLDFAST_NOTIFY_MAIL_FROM, or use a webhook.",
  },
  delivery_failed: {
    status: 502,
    message: "The receiver did not accept the message.",
    retryable: true,
    nextStep: "Read what the receiver returned: `holdfast notify history`. Then run `holdfast notify test`.",
  },
} as const satisfies Record<string, ErrorEntry>;
