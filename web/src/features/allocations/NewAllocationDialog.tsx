// Requests an allocation. A node whose agent does not run as root can offer its own account only.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { TextareaField, TextField } from "../../design/forms/Field.tsx";
import type { PickerOption } from "../../design/forms/Picker.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { useActing, useMe } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { NodePicker, nodeOption } from "../nodes/NodePicker.tsx";
import { hostsUsers, useNode, useUsableNodes } from "../nodes/queries.ts";
import { MemberField } from "./MemberField.tsx";
import { ProjectField } from "./ProjectField.tsx";
import { keysFrom } from "./ssh-keys.ts";

/** The capability of an agent to create users. */
const makesUsers = "os_users";

export function NewAllocationDialog({ nodeId, onClose }: { nodeId?: string; onClose: () => void }) {
  const { only, total } = useUsableNodes();
  const [chosen, setChosen] = useState<PickerOption | null>(nodeId ? { id: nodeId, label: "" } : null);
  const wanted = chosen?.id ?? only?.id;
  const node = useNode(wanted).data;
  const [username, setUsername] = useState("");
  const [project, setProject] = useState<PickerOption | null>(null);
  const [owner, setOwner] = useState<PickerOption | null>(null);
  const me = useMe();
  const { may } = useActing();
  const [keys, setKeys] = useState("");
  const ownAccount = node && !node.capabilities.includes(makesUsers) ? (node.facts?.account ?? null) : null;
  const pasted = keysFrom(keys);
  const create = useChange({
    send: (call, idempotencyKey) =>
      call(createAllocation, {
        body: {
          node_id: wanted ?? "",
          username: ownAccount ?? username,
          ssh_keys: ownAccount ? [] : pasted.keys,
          ...(project ? { project_id: project.id } : {}),
          ...(owner ? { owner_id: owner.id } : {}),
        },
        idempotencyKey,
      }),
    said: `Requested ${ownAccount ?? username} on ${node?.name ?? "the node"}`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title="New allocation"
      description="Creates an OS user on a node. The user is removed when the allocation is released."
      action="Create allocation"
      mutation={create}
    >
      <NodePicker
        label="Node"
        choice={{ status: "active", capability: hostsUsers }}
        value={node ? nodeOption(node) : chosen}
        onChange={setChosen}
        hint={nodeHint(node, total)}
      />
      {ownAccount ? (
        <TextField
          label="User"
          value={ownAccount}
          readOnly
          hint={
            <>
              The agent on {node?.name} does not run as root, so it cannot create users. It offers its own account,
              which is shared, is never removed and keeps its SSH keys. Run the agent as root to create users.
            </>
          }
        />
      ) : (
        <TextField
          label="User"
          value={username}
          onChange={(event) => setUsername(event.currentTarget.value.toLowerCase())}
          hint="1 to 31 lower-case letters, digits and hyphens, starting with a letter. A user that already exists on the node is never taken over."
          pattern="[a-z][a-z0-9\-]{0,30}"
          title="1 to 31 lower-case letters, digits and hyphens, starting with a letter"
          placeholder="ada"
          maxLength={31}
          autoComplete="off"
          spellCheck={false}
          required
        />
      )}
      <ProjectField value={project} onChange={setProject} />
      {may("allocations:admin") && (
        <MemberField label="Owner" value={owner} onChange={setOwner} except={me.id} none="You" />
      )}
      {!ownAccount && (
        <TextareaField
          label="SSH keys"
          optional
          mono
          rows={3}
          value={keys}
          ref={(area) => area?.setCustomValidity(pasted.problem ?? "")}
          error={pasted.problem}
          onChange={(event) => setKeys(event.currentTarget.value)}
          placeholder="ssh-ed25519 AAAA… you@laptop"
          hint={
            <>
              Public keys, one per line, as in <Code>id_ed25519.pub</Code>.
            </>
          }
        />
      )}
    </FormDialog>
  );
}

/** Why a node that cannot do it now was chosen all the same: a link names it, or it has changed meanwhile. */
function nodeHint(node: NodeDetail | undefined, total: number | undefined): string | undefined {
  if (!node) return total === 0 ? "No node accepts allocations at the moment. Add or reactivate one." : undefined;
  if (node.status !== "active") return `${node.name} is ${node.status} and accepts no new allocations.`;
  return node.connection === "online"
    ? undefined
    : `${node.name} is offline. The user is created when the node reconnects.`;
}
