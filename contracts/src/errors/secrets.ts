// Secrets, and the keys that encrypt them.

import type { ErrorEntry } from "./entry.ts";

export const secretErrors = {
  secret_in_use: {
    status: 409,
    message: "Executions have used this secret.",
    retryable: false,
    nextStep:
      "Read what used it: `holdfast secret show <name>`. To delete it all the same, use `--yes`, or `force=true`.",
  },
  kek_missing: {
    status: 409,
    message: "Something is sealed under a key-encryption key that this api does not have.",
    retryable: false,
    nextStep:
      "Set that key as HOLDFAST_PREVIOUS_KEK_BASE64 and HOLDFAST_PREVIOUS_KEK_ID on every api, restart it, and run `holdfast secret rewrap`.",
  },
  kek_differs: {
    status: 409,
    message: "The api processes have different current key-encryption keys.",
    retryable: false,
    nextStep:
      "Give every api the same HOLDFAST_KEK_ID and HOLDFAST_KEK_BASE64. `holdfast secret rewrap --check` lists them.",
  },
} as const satisfies Record<string, ErrorEntry>;
