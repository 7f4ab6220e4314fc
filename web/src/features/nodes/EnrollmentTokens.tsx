// Enrollment tokens that can still be used. Their secrets are not shown again.

import { type EnrollmentToken, revokeEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { useState } from "react";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useNow } from "../../design/values/use-now.ts";
import { useChange } from "../../use-change.ts";
import { isOpen, useEnrollmentTokens } from "./enrollment-queries.ts";
import { OpenCredentials } from "./OpenCredentials.tsx";

export function EnrollmentTokens() {
  const now = useNow("seconds");
  const open = useEnrollmentTokens().items?.filter((token) => isOpen(token, now));
  const [revoking, setRevoking] = useState<EnrollmentToken | null>(null);
  return (
    <>
      <OpenCredentials title="Open enrollment tokens" open={open} purposeOf={purposeOf} onRevoke={setRevoking} />
      {revoking && <RevokeDialog token={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}

function purposeOf({ kind, node_id, node_name }: EnrollmentToken): string {
  if (kind === "bootstrap") return `${node_name}, reusable`;
  return node_id ? `New identity for ${node_name}` : "A new node";
}

function RevokeDialog({ token, onClose }: { token: EnrollmentToken; onClose: () => void }) {
  const revoke = useChange({
    send: (call) => call(revokeEnrollmentToken, { params: { token_id: token.id } }),
    said: "Revoked the token",
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title="Revoke this enrollment token?"
      action="Revoke token"
      onConfirm={() => revoke.mutate("")}
      busy={revoke.isPending}
      error={revoke.error}
    >
      <p>The token can no longer be used to enroll. A node that is already enrolled with it is not affected.</p>
    </ConfirmDialog>
  );
}
