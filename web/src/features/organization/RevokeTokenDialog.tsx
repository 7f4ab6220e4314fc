// Asks for confirmation before a token is revoked.

import { type ApiToken, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { When } from "../../design/values/When.tsx";
import { useChange } from "../../use-change.ts";

export function RevokeTokenDialog({ token, onClose }: { token: ApiToken; onClose: () => void }) {
  const revoke = useChange({
    send: (call) => call(revokeToken, { params: { token_id: token.id } }),
    said: `Revoked ${token.name}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Revoke ${token.name}?`}
      action="Revoke token"
      onConfirm={() => revoke.mutate("")}
      busy={revoke.isPending}
      error={revoke.error}
    >
      <p>
        Requests with it are rejected immediately. This cannot be undone.{" "}
        {token.last_used_at ? (
          <>
            It was last used <When at={token.last_used_at} />.
          </>
        ) : (
          "It was never used."
        )}
      </p>
    </ConfirmDialog>
  );
}
