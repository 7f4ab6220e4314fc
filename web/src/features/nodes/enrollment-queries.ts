// Enrollment tokens, newest first. Polled often while a person waits for a machine to enroll.

import { type EnrollmentToken, listEnrollmentTokens } from "@holdfast/contracts/endpoints/enrollment";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

export function useEnrollmentTokens({ watchful = false }: { watchful?: boolean } = {}) {
  const { org, call } = useActing();
  const usual = useRefetchInterval();
  return useListing<EnrollmentToken>({
    key: ["org", org.id, "enrollment-tokens", "list"],
    page: ({ cursor, signal }) => call(listEnrollmentTokens, { query: { cursor }, signal }),
    refetchInterval: watchful ? 2_000 : usual,
  });
}

/** Neither revoked, nor expired, nor used up. */
export function isOpen(token: EnrollmentToken, now: number): boolean {
  const usedUp = token.kind === "pairing" && token.used_at !== null;
  return !usedUp && !token.revoked_at && Date.parse(token.expires_at) > now;
}
