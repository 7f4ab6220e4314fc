// Making, renaming and deleting a project.

import { createProject, deleteProject, type Project, updateProject } from "@holdfast/contracts/endpoints/projects";
import { useState } from "react";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { NameAndSlug } from "../../design/forms/NameAndSlug.tsx";
import { useChange } from "../../use-change.ts";

export function NewProjectDialog({ onClose }: { onClose: () => void }) {
  const [named, setNamed] = useState({ name: "", slug: "" });
  const create = useChange({
    send: (call, idempotencyKey) => call(createProject, { body: named, idempotencyKey }),
    said: `Created project ${named.name}`,
    onDone: onClose,
  });
  return (
    <FormDialog open onClose={onClose} title="New project" action="Create project" mutation={create}>
      <NameAndSlug value={named} onChange={setNamed} example="Continuous integration" />
    </FormDialog>
  );
}

type ProjectDialogProps = { project: Project; onClose: () => void };

export function RenameProjectDialog({ project, onClose }: ProjectDialogProps) {
  const [name, setName] = useState(project.name);
  const rename = useChange({
    send: (call) => call(updateProject, { params: { project_id: project.id }, body: { name } }),
    said: `Renamed to ${name}`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Rename project"
      description={`The slug ${project.slug} does not change, so commands keep working.`}
      action="Rename project"
      mutation={rename}
    >
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={80}
        autoComplete="off"
        required
      />
    </FormDialog>
  );
}

export function DeleteProjectDialog({ project, onClose }: ProjectDialogProps) {
  const remove = useChange({
    send: (call) => call(deleteProject, { params: { project_id: project.id } }),
    said: `Deleted project ${project.name}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Delete project ${project.name}?`}
      action="Delete project"
      onConfirm={() => remove.mutate("")}
      busy={remove.isPending}
      error={remove.error}
    >
      <p>This cannot be undone. Its slug {project.slug} can be used again. The audit trail keeps its name.</p>
    </ConfirmDialog>
  );
}
