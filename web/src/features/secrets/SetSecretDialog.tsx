// Creates a secret, or replaces the value of one. What is typed is not shown, and leaves the page with the request only.

import { type Secret, secretLength, setSecret } from "@holdfast/contracts/endpoints/secrets";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { Checkbox, TextareaField, TextField } from "../../design/forms/Field.tsx";
import { useChange } from "../../use-change.ts";

type SetSecretDialogProps = { secret?: Secret; onClose: () => void };

export function SetSecretDialog({ secret, onClose }: SetSecretDialogProps) {
  const [name, setName] = useState(secret?.name ?? "");
  const [value, setValue] = useState("");
  const [membersMayUse, setMembersMayUse] = useState(secret?.members_may_use ?? false);
  const set = useChange({
    send: (call) => call(setSecret, { body: { name, value, members_may_use: membersMayUse } }),
    said: secret ? `Replaced ${name}` : `Created ${name}`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={secret ? `Replace ${secret.name}` : "New secret"}
      description={
        secret && "The value before is erased. Steps that were dispatched before keep the value they were given."
      }
      action={secret ? "Replace value" : "Create secret"}
      mutation={set}
    >
      {!secret && (
        <TextField
          label="Name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          hint="Letters, digits, dots, hyphens and underscores. Steps name it in their dispatch."
          placeholder="deploy-key"
          pattern="[A-Za-z][A-Za-z0-9_.\-]{0,63}"
          maxLength={64}
          autoComplete="off"
          required
        />
      )}
      <TextareaField
        label="Value"
        value={value}
        onChange={(event) => setValue(event.currentTarget.value)}
        hint={`At least ${secretLength.least} characters, also of several lines. It cannot be shown again.`}
        minLength={secretLength.least}
        maxLength={secretLength.most}
        rows={4}
        autoComplete="off"
        concealed
        required
      />
      <Checkbox
        label="Steps of members may use it"
        hint="Otherwise only steps that an owner or admin requests. Members see its name then, never its value."
        checked={membersMayUse}
        onChange={(event) => setMembersMayUse(event.currentTarget.checked)}
      />
    </FormDialog>
  );
}
