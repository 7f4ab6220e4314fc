// Makes a token for a machine that shall join, then shows how.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { SelectField, TextField } from "../../design/Field.tsx";
import { FormDialog } from "../../design/FormDialog.tsx";
import { useChange } from "../../use-change.ts";
import { JoinDialog, type NewToken } from "./JoinDialog.tsx";

const lifetimes = [
  { minutes: 15, label: "15 minutes" },
  { minutes: 60, label: "1 hour" },
  { minutes: 24 * 60, label: "1 day" },
];

type AddNodeDialogProps = {
  onClose: () => void;
  /** Give this node a new identity instead of making a new node. */
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
          ? "Makes a token that only this node can use. With it the agent gets a new key and certificate; the node keeps its name, tasks and allocations."
          : "Makes a token that lets one machine join. Next you get the command to run on it."
      }
      action={node ? "Make a token" : "Get the join command"}
      mutation={create}
    >
      {!node && (
        <TextField
          label="Name"
          optional
          value={name}
          onChange={(event) => setName(event.currentTarget.value.toLowerCase())}
          hint="What the node is called here. Left out, the machine's host name."
          placeholder="rack-2.gpu-4"
          pattern="[a-z0-9]([a-z0-9.\-]{0,61}[a-z0-9])?"
          title="A host name: letters, digits, hyphens and dots"
          maxLength={63}
          autoComplete="off"
          spellCheck={false}
        />
      )}
      <SelectField
        label="The token works for"
        hint="It works once. Make it last only as long as you need to get to the machine."
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
