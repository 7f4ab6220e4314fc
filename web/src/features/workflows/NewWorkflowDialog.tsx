// Creates a workflow with an empty draft, and opens it.

import { applyWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { useChange } from "../../use-change.ts";
import { emptyDocument } from "./empty-document.ts";

export function NewWorkflowDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const navigate = useNavigate();
  const create = useChange({
    // Revision 0: a workflow with this name that exists already is not overwritten.
    send: (call) => call(applyWorkflow, { body: { name, source: emptyDocument, revision: 0 } }),
    said: `Created ${name}`,
    onDone: ({ id }) => void navigate({ to: "/workflows/$workflowId", params: { workflowId: id } }),
  });
  return (
    <FormDialog open onClose={onClose} title="New workflow" action="Create workflow" mutation={create}>
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        hint="2 to 40 lower-case letters, digits and hyphens, starting with a letter. It cannot be changed later."
        placeholder="nightly-backup"
        pattern="[a-z][a-z0-9\-]{0,38}[a-z0-9]"
        maxLength={40}
        autoComplete="off"
        required
      />
    </FormDialog>
  );
}
