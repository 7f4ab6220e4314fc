// Creates an enrollment token, then shows the command to run.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { SelectField, TextField } from "../../design/forms/Field.tsx";
import { useChange } from "../../use-change.ts";
import { JoinDialog, type NewToken } from "./JoinDialog.tsx";

const lifetimes = [
  { minutes: 15, label: "15 minutes" },
  { minutes: 60, label: "1 hour" },
  { minutes: 24 * 60, label: "1 day" },
];

type AddNodeDialogProps = {
  onClose: () => void;
  /** Gives this node a new identity instead of creating a node. */
  node?: Pick<Node, "id" | "name">;
};

export function AddNodeDialog({ onClose, node }: AddNodeDialogProps) {
  const [name, setName] = useState("");
  const [minutes, setMinutes] = useState(15);
  const [made, setMade] = useState<NewToken | null>(null);
  const create = useChange({
    send: (call, idempotencyKey) =>
      call(createEnrollmentToken, {
        body: {
          ...(node ? { node_id: node.id } : name.trim() ? { node_name: name.trim() } : {}),
          expires_in_minutes: minutes,
        },
        idempotencyKey,
      }),
    onDone: setMade,
  });
  if (made) return <JoinDialog token={made} onClose={onClose} rekeyed={node} />;
  return (
    <FormDialog
      open
      onClose={onClose}
      title={node ? `New identity for ${node.name}` : "Add a node"}
      description={
        node
          ? "Creates a token that only this node can use. The agent gets a new key and certificate; the node keeps its name, tasks and allocations."
          : "Creates a token for one machine. The next step shows the command to run on it."
      }
      action={node ? "Create token" : "Get the command"}
      mutation={create}
    >
      {!node && (
        <TextField
          label="Name"
          optional
          value={name}
          onChange={(event) => setName(event.currentTarget.value.toLowerCase())}
          hint="Name of the node. Default: the machine's host name."
          placeholder="rack-2.gpu-4"
          pattern="[a-z0-9]([a-z0-9.\-]{0,61}[a-z0-9])?"
          title="A host name: letters, digits, hyphens and dots"
          maxLength={63}
          autoComplete="off"
          spellCheck={false}
        />
      )}
      <SelectField
        label="Token valid for"
        hint="It can be used once. Choose the shortest time that is enough."
        value={minutes}
        onChange={(event) => setMinutes(Number(event.currentTarget.value))}
      >
        {lifetimes.map((lifetime) => (
          <option key={lifetime.minutes} value={lifetime.minutes}>
            {lifetime.label}
          </option>
        ))}
      </SelectField>
    </FormDialog>
  );
}
