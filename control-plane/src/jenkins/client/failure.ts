// What can go wrong between Holdfast and a controller, as data: kinds for decisions, words with the fix for people.

import type { TaskFailure } from "@holdfast/contracts/node/protocol";

const failureKinds = [
  "address_refused",
  "unreachable",
  "unauthorized",
  "forbidden",
  "throttled",
  "server_error",
  "unexpected",
] as const;
export type FailureKind = (typeof failureKinds)[number];

export class JenkinsFailure extends Error {
  override name = "JenkinsFailure";
  readonly kind: FailureKind;
  /** For people; without secrets. */
  readonly detail: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: FailureKind,
    detail: string,
    { retryAfterSeconds }: { retryAfterSeconds?: number | undefined } = {},
  ) {
    super(`${kind}: ${detail}`);
    this.kind = kind;
    this.detail = detail;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Trying again does not help: a person has to act. */
export const needsPerson: Record<FailureKind, boolean> = {
  address_refused: true,
  unreachable: false,
  unauthorized: true,
  forbidden: true,
  throttled: false,
  server_error: false,
  unexpected: false,
};

const again = "It is tried again by itself.";

const words: Record<FailureKind, { message: string; nextStep: (name: string) => string }> = {
  address_refused: {
    message: "The controller's address is not allowed.",
    nextStep: () =>
      "Use a public https:// URL, or ask the operator of the installation to list the address in HOLDFAST_JENKINS_ALLOW_PRIVATE.",
  },
  unreachable: {
    message: "The controller cannot be reached.",
    nextStep: () => `Check that it runs and that the api's machine reaches its URL. ${again}`,
  },
  unauthorized: {
    message: "The controller does not accept the user and API token.",
    nextStep: (name) =>
      `Create a new API token for the user on the controller, and run \`holdfast jenkins set-token ${name}\`.`,
  },
  forbidden: {
    message: "The controller refuses the user a permission.",
    nextStep: (name) =>
      `Give the user Overall/Read and Agent/Create, Configure, Connect, Disconnect and Delete on the controller, then run \`holdfast jenkins check ${name}\`.`,
  },
  throttled: {
    message: "The controller, or a proxy before it, limits requests.",
    nextStep: () =>
      "It is tried again later by itself. If it stays so, allow more requests from the api's machine.",
  },
  server_error: {
    message: "The controller has an internal error.",
    nextStep: () => `Read the controller's log. ${again}`,
  },
  unexpected: {
    message: "What responds at the controller's URL is not Jenkins, or a version that is not known.",
    nextStep: () => `Check the URL in a browser: with \`/api/json\` behind it, it shows JSON. ${again}`,
  },
};

/** `name`: of the controller, for commands that can be pasted. */
export function problemOf({ kind, detail }: JenkinsFailure, name: string): TaskFailure {
  const { message, nextStep } = words[kind];
  return {
    code: `jenkins_${kind}`,
    message: `${message} ${detail}`.trim().slice(0, 500),
    next_step: nextStep(name),
  };
}

const LONGEST_BACKOFF_SECONDS = 300;

/** How long to wait after the nth failure in a row. */
export function backoffSeconds(
  { kind, retryAfterSeconds }: Pick<JenkinsFailure, "kind" | "retryAfterSeconds">,
  failures: number,
  pollSeconds: number,
): number {
  const doubled = Math.min(pollSeconds * 2 ** Math.min(failures, 16), LONGEST_BACKOFF_SECONDS);
  const least = needsPerson[kind] ? Math.max(doubled, 30) : doubled;
  return Math.min(Math.max(least, retryAfterSeconds ?? 0), 3600);
}
