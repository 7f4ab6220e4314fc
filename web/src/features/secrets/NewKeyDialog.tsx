// Asks for confirmation before a secret gets another data key.

import { rotateSecret, type Secret } from "@holdfast/contracts/endpoints/secrets";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { When } from "../../design/values/When.tsx";
import { useChange } from "../../use-change.ts";

export function NewKeyDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const rotate = useChange({
    send: (call) => call(rotateSecret, { params: { secret_id: secret.id }, body: {} }),
    said: `${secret.name} has a new data key`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`New data key for ${secret.name}`}
      action="Encrypt again"
      mutation={rotate}
    >
      <p>
        The same value is encrypted with a new key; version {secret.version} stays. The present key is from{" "}
        <When at={secret.key_changed_at} />. If the value itself may be known to somebody, replace the value.
      </p>
    </FormDialog>
  );
}
