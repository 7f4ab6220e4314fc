// Everything that ends a terminal, or keeps it from opening, with the view of it that crosses a wire.

import type { TerminalHop } from "./hops.ts";
import { type TerminalOwner, terminalOwnerOf } from "./owners.ts";
import { endingReasons } from "./terminal/ending.ts";
import { openingReasons } from "./terminal/opening.ts";
import { streamReasons } from "./terminal/stream.ts";
import type { Remedy, TerminalReason } from "./vocabulary.ts";

export const terminalReasons = { ...openingReasons, ...streamReasons, ...endingReasons };
export type TerminalFailureCode = keyof typeof terminalReasons;

export function isTerminalFailure(code: string): code is TerminalFailureCode {
  return Object.hasOwn(terminalReasons, code);
}

/** As frames and answers present a failure. `owner` is the group of the owner's id. */
export type TerminalFailure = {
  title: string;
  hop: TerminalHop;
  owner: TerminalOwner;
  message: string;
  action: string;
  retryable: boolean;
};

export const terminalFailures = Object.fromEntries(
  Object.entries<TerminalReason>(terminalReasons).map(([code, reason]) => {
    const { title, hop, message, nextStep: action, retryable } = reason;
    const owner = reason.ownerWord ?? terminalOwnerOf(reason.owner);
    return [code, { title, hop, owner, message, action, retryable }];
  }),
) as Record<TerminalFailureCode, TerminalFailure>;

const entryOf = (code: TerminalFailureCode): TerminalReason => terminalReasons[code];

export const isIntendedEnd = (code: TerminalFailureCode): boolean => entryOf(code).intendedEnd === true;

/** What a client can offer. */
export const remedyFor = (code: TerminalFailureCode): Remedy => entryOf(code).remedy;

/** What helps beside the remedy. */
export const alsoOffered = (code: string): TerminalReason["alsoOffer"] =>
  isTerminalFailure(code) ? entryOf(code).alsoOffer : undefined;

/** An open terminal that ends with it leaves its shell running. */
export const mayFindShellAgain = (code: string): boolean =>
  isTerminalFailure(code) && entryOf(code).shellSurvives === true;

/** It broke between the node and the gateway, not on the node. */
export function isOfNodeStream(code: string): boolean {
  if (!isTerminalFailure(code)) return false;
  const { hop } = terminalReasons[code];
  return hop === "node_terminal_reachability" || hop === "gateway_node_stream";
}

export type ClientFailureCode = {
  [Code in TerminalFailureCode]: (typeof terminalReasons)[Code] extends { clientNoticed: true } ? Code : never;
}[TerminalFailureCode];

/** What only a client can notice, because nothing of it reaches the gateway. */
export const clientFailureCodes = (Object.keys(terminalReasons) as TerminalFailureCode[]).filter(
  (code): code is ClientFailureCode => entryOf(code).clientNoticed === true,
) as [ClientFailureCode, ...ClientFailureCode[]];
