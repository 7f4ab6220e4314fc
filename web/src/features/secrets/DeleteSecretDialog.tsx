// Asks for confirmation before a secret is deleted, and shows what used it.

import { deleteSecret, type Secret } from "@holdfast/contracts/endpoints/secrets";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useChange } from "../../use-change.ts";
import { useSecret } from "./queries.ts";

export function DeleteSecretDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const { data } = useSecret(secret.id);
  const remove = useChange({
    send: (call) => call(deleteSecret, { params: { secret_id: secret.id }, query: { force: "true" } }),
    said: `Deleted ${secret.name}`,
    onDone: onClose,
  });
  const workflows = data?.used_by.workflows ?? [];
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Delete ${secret.name}?`}
      action="Delete secret"
      onConfirm={() => remove.mutate("")}
      busy={remove.isPending}
      error={remove.error}
    >
      <p>
        Steps that name it are refused from now on; those that were dispatched keep the value they were given. This
        cannot be undone.
      </p>
      {secret.uses > 0 && (
        <p className="mt-3">
          {secret.uses} {secret.uses === 1 ? "execution has" : "executions have"} used it
          {workflows.length > 0 &&
            `, of the workflows ${workflows.map(({ workflow_id }) => workflow_id).join(", ")}`}
          .
        </p>
      )}
    </ConfirmDialog>
  );
}
