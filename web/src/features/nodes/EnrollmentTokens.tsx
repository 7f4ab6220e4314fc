// Enrollment tokens that can still be used. Their secrets are not shown again.

import { type EnrollmentToken, revokeEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { useNow } from "../../design/values/use-now.ts";
import { TimeLeft, When } from "../../design/values/When.tsx";
import { useChange } from "../../use-change.ts";
import { isOpen, useEnrollmentTokens } from "./enrollment-queries.ts";

/** Renders nothing while there are none. */
export function EnrollmentTokens() {
  const now = useNow("seconds");
  const open = useEnrollmentTokens().items?.filter((token) => isOpen(token, now));
  const [revoking, setRevoking] = useState<EnrollmentToken | null>(null);
  if (!open || open.length === 0) return null;
  return (
    <section className="mt-10" aria-labelledby="open-tokens">
      <h2 id="open-tokens" className="mb-3 text-lg font-semibold">
        Open enrollment tokens
      </h2>
      <Table
        label="Open enrollment tokens"
        columns={[
          "For",
          "Expires in",
          { wide: "Created" },
          { wide: "Created by" },
          <ActionsHeader key="actions" />,
        ]}
      >
        {open.map((token) => (
          <tr key={token.id}>
            <Cell>{purposeOf(token)}</Cell>
            <Cell>
              <TimeLeft until={token.expires_at} />
            </Cell>
            <Cell className={`${wideOnly} text-ink-muted`}>
              <When at={token.created_at} />
            </Cell>
            <Cell className={`${wideOnly} max-w-52 truncate text-ink-muted`}>{token.created_by}</Cell>
            <Cell className="w-0 px-2 py-0 text-right">
              <Button look="quiet" onClick={() => setRevoking(token)}>
                Revoke
              </Button>
            </Cell>
          </tr>
        ))}
      </Table>
      {revoking && <RevokeDialog token={revoking} onClose={() => setRevoking(null)} />}
    </section>
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
