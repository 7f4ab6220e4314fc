// What the end of a connection means, and when the next one is tried. Pure. Attempts are counted until a gateway has accepted
// the agent: a socket that opens and closes again proves nothing.

import { executionCloseCodes } from "@holdfast/contracts/execution/limits";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";

export type Ended =
  /** Before the upgrade. */
  | { kind: "refused"; status: number; text: string }
  | { kind: "unreachable"; message: string }
  /** The gateway sent nothing for so long. */
  | { kind: "silent"; ms: number }
  | { kind: "closed"; code: number; reason: string }
  /** The `welcome` is for somebody else. */
  | { kind: "other_agent"; message: string };

export type Explained = { isTokenRefused: boolean; message: string; nextStep?: string };

const usual: BackoffPolicy = { firstMs: 500, maxMs: 30_000 };
/** Nothing here changes that: somebody has to pair the agent again, or to undo a mistake. */
const refused: BackoffPolicy = { firstMs: 60_000, maxMs: 600_000 };

export function delayAfter(ended: Ended, attempt: number, random?: number): number {
  return backoffDelay(explainEnd(ended).isTokenRefused ? refused : usual, attempt, random);
}

/** `ready`: the gateway had accepted the agent on that connection. */
export function attemptAfter(ended: Ended, attempt: number, ready: boolean): number {
  const isUseless = ended.kind === "closed" && ended.code === executionCloseCodes.malformed;
  return ready && !isUseless && !explainEnd(ended).isTokenRefused ? 0 : attempt + 1;
}

const CHECK_TOKEN =
  "Confirm that the agent token has the form <organization id>.<secret> with the id of your organization, and that the agent has " +
  "not been revoked (page Agents). Otherwise pair it again: holdfast agent connect --pairing-token …";

export function explainEnd(ended: Ended): Explained {
  switch (ended.kind) {
    case "refused":
      if (ended.status === 401 || ended.status === 403) {
        const message = `the gateway refused the agent token (status ${ended.status})`;
        return { isTokenRefused: true, message, nextStep: CHECK_TOKEN };
      }
      return {
        isTokenRefused: false,
        message: `no WebSocket of a gateway at this address: status ${ended.status}${ended.text ? `: ${ended.text}` : ""}`,
        nextStep: "Check gatewayWsUrl in the credentials, and that the gateway runs.",
      };
    case "unreachable":
      return {
        isTokenRefused: false,
        message: `the gateway cannot be reached: ${ended.message}`,
        nextStep: "Confirm that the gateway runs and is reachable from this host.",
      };
    case "silent":
      return { isTokenRefused: false, message: `nothing came from the gateway for ${ended.ms / 1000} s` };
    case "other_agent":
      return { isTokenRefused: true, message: ended.message, nextStep: CHECK_TOKEN };
    case "closed":
      return explainClose(ended);
  }
}

function explainClose({ code, reason }: { code: number; reason: string }): Explained {
  switch (code) {
    case executionCloseCodes.revoked:
      return {
        isTokenRefused: true,
        message: "the gateway closed the connection: the agent was revoked",
        nextStep: CHECK_TOKEN,
      };
    case executionCloseCodes.stopping:
      return { isTokenRefused: false, message: "the gateway has stopped" };
    case executionCloseCodes.malformed:
      return {
        isTokenRefused: false,
        message: `the gateway does not understand this agent${reason ? `: ${reason}` : ""}`,
        nextStep: "Check that agent and gateway have versions that fit.",
      };
    default:
      return {
        isTokenRefused: false,
        message: `the connection was closed with code ${code}${reason ? `: ${reason}` : ""}`,
      };
  }
}
