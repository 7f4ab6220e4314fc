// The actions on one node. Destructive ones ask for confirmation.

import { changeNode, type NodeChange, type NodeDetail, updateNode } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { Menu, MenuItem, MenuSeparator } from "../../design/controls/Menu.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { useChange } from "../../use-change.ts";
import { AddNodeDialog } from "./AddNodeDialog.tsx";
import { BundleDialog } from "./BundleDialog.tsx";
import { changeWords, offeredChanges } from "./changes.ts";

type Opened = NodeChange | "rename" | "identity" | "bundle";

export function NodeActions({ node }: { node: NodeDetail }) {
  const [opened, setOpened] = useState<Opened | null>(null);
  if (node.status === "retired") return null;
  const changes = offeredChanges(node.status, { revoked: node.certificate?.revoked_at != null });
  const close = () => setOpened(null);
  const item = (change: NodeChange) => (
    <MenuItem key={change} danger={changeWords[change].danger} onClick={() => setOpened(change)}>
      {changeWords[change].action}
    </MenuItem>
  );
  return (
    <>
      <Menu
        align="end"
        trigger={
          <Button aria-label={`Actions for node ${node.name}`}>
            Actions
            <Icon name="chevron" />
          </Button>
        }
      >
        <MenuItem onClick={() => setOpened("rename")}>Rename node</MenuItem>
        <MenuItem onClick={() => setOpened("identity")}>New identity</MenuItem>
        <MenuItem onClick={() => setOpened("bundle")}>Recovery bundle</MenuItem>
        <MenuSeparator />
        {changes.filter((change) => !changeWords[change].danger).map(item)}
        {changes.filter((change) => changeWords[change].danger).map(item)}
      </Menu>
      {opened === "rename" && <RenameDialog node={node} onClose={close} />}
      {opened === "identity" && <AddNodeDialog node={node} onClose={close} />}
      {opened === "bundle" && <BundleDialog node={node} onClose={close} />}
      {opened && opened !== "rename" && opened !== "identity" && opened !== "bundle" && (
        <ChangeDialog node={node} change={opened} onClose={close} />
      )}
    </>
  );
}

function ChangeDialog({ node, change, onClose }: { node: NodeDetail; change: NodeChange; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const words = changeWords[change];
  const send = useChange({
    send: (call) =>
      call(changeNode, {
        params: { node_id: node.id },
        body: { change, ...(reason.trim() ? { reason: reason.trim() } : {}) },
      }),
    said: `${node.name} ${words.done}`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`${words.question} ${node.name}?`}
      description={
        <ul className="list-disc space-y-1 pl-4">
          {words.effects.map((effect) => (
            <li key={effect}>{effect}</li>
          ))}
          {node.running_tasks !== null && node.running_tasks > 0 && change !== "reactivate" && (
            <li>
              {node.running_tasks} {node.running_tasks === 1 ? "task is" : "tasks are"} running on it now.
            </li>
          )}
        </ul>
      }
      action={words.action}
      danger={words.danger}
      mutation={send}
    >
      <TextField
        label="Reason"
        optional
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        hint="Shown on the node's page and in the audit trail."
        maxLength={200}
        autoComplete="off"
      />
    </FormDialog>
  );
}

function RenameDialog({ node, onClose }: { node: NodeDetail; onClose: () => void }) {
  const [name, setName] = useState(node.name);
  const rename = useChange({
    send: (call) => call(updateNode, { params: { node_id: node.id }, body: { name } }),
    said: `${node.name} renamed to ${name}`,
    onDone: onClose,
  });
  return (
    <FormDialog open onClose={onClose} title={`Rename ${node.name}`} action="Rename node" mutation={rename}>
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value.toLowerCase())}
        hint="A host name: letters, digits, hyphens and dots. The node's id does not change."
        pattern="[a-z0-9]([a-z0-9.\-]{0,61}[a-z0-9])?"
        title="A host name: letters, digits, hyphens and dots"
        maxLength={63}
        autoComplete="off"
        spellCheck={false}
        required
      />
    </FormDialog>
  );
}
