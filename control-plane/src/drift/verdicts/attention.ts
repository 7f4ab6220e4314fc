// The causes of a stored verdict as nodes, lists and the fleet present them. It decides nothing: what is wrong is decided
// in `classify/`.

import type { Attention } from "@holdfast/contracts/endpoints/nodes";
import { presentReason } from "@holdfast/contracts/reasons/catalogue";
import { placeOf } from "@holdfast/contracts/reasons/hops";
import { nodeReason, ownerGroupOf } from "@holdfast/contracts/reasons/node";
import { nodeOwnerOf } from "@holdfast/contracts/reasons/owners";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import type { z } from "zod";
import { messageOf, nextStepOf } from "./message.ts";
import type { StoredCause } from "./stored.ts";

type AttentionItem = z.infer<typeof Attention>;

export function attentionOf(causes: readonly StoredCause[], now: number): AttentionItem[] {
  return causes.map((cause) => {
    const { spokenAs: code, reason, severity, owner, nextAction, confidence, userState, since } = cause;
    const known = nodeReason(code);
    const spoken = { ...cause, evidence: cause.observed ?? [] };
    return {
      ...{ code, reason, ...presentReason(code), severity, owner_id: owner, next_action: nextAction },
      ...{ confidence, user_state: userState, since },
      ...placeOf(known?.at ?? null),
      ...(known || !isTerminalFailure(code) ? {} : { hop: terminalFailures[code].hop }),
      signal: known ? known.signal : cause.signal,
      owner: known ? ownerGroupOf(code) : nodeOwnerOf(owner),
      ...{ message: messageOf(spoken, now), next_step: nextStepOf(cause) },
      correlation_id: cause.correlationId ?? null,
    };
  });
}
