// Creates a receiver. The secret of a webhook is shown once.

import { createReceiver, type ReceiverKind } from "@holdfast/contracts/endpoints/notify";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { ShownOnceDialog } from "../../design/dialogs/ShownOnceDialog.tsx";
import { SelectField, TextField } from "../../design/forms/Field.tsx";
import { useChange } from "../../use-change.ts";

export function NewReceiverDialog({ onClose }: { onClose: () => void }) {
  const [kind, setKind] = useState<ReceiverKind>("webhook");
  const [address, setAddress] = useState("");
  const [secret, setSecret] = useState<string | null>(null);
  const create = useChange({
    send: (call, idempotencyKey) =>
      call(createReceiver, { body: kind === "webhook" ? { url: address } : { mail: address }, idempotencyKey }),
    onDone: (receiver) => {
      if (receiver.secret === null) onClose();
      else setSecret(receiver.secret);
    },
  });
  if (secret) {
    return (
      <ShownOnceDialog onClose={onClose} title="Secret of the webhook" label="Secret" value={secret}>
        It signs every message. Store it with the receiver, which checks the signature. It is not shown again.
      </ShownOnceDialog>
    );
  }
  return (
    <FormDialog open onClose={onClose} title="New receiver" action="Create receiver" mutation={create}>
      <SelectField
        label="Kind"
        value={kind}
        onChange={(event) => setKind(event.currentTarget.value === "mail" ? "mail" : "webhook")}
      >
        <option value="webhook">Webhook</option>
        <option value="mail">Mail</option>
      </SelectField>
      <TextField
        label={kind === "webhook" ? "URL" : "Mail address"}
        type={kind === "webhook" ? "url" : "email"}
        value={address}
        onChange={(event) => setAddress(event.currentTarget.value)}
        hint={
          kind === "webhook"
            ? "A public https:// URL. Redirects are not followed."
            : "Of a person or a mailing list."
        }
        placeholder={kind === "webhook" ? "https://hooks.example.com/holdfast" : "ops@example.com"}
        maxLength={kind === "webhook" ? 2_000 : 254}
        autoComplete="off"
        required
      />
    </FormDialog>
  );
}
