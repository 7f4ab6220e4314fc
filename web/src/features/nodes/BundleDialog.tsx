// A recovery bundle for one node: what it does, then how it is applied on the host. Its secret is shown once.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { createBundle } from "@holdfast/contracts/endpoints/bundles";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { actions } from "@holdfast/contracts/reasons/actions";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Dialog, DialogActions } from "../../design/dialogs/Dialog.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { CopyField } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { TimeLeft } from "../../design/values/When.tsx";
import { useChange } from "../../use-change.ts";
import { Effects } from "./Effects.tsx";

type Created = AnswerOf<typeof createBundle>;
type Props = { node: Pick<Node, "id" | "name">; onClose: () => void };

export function BundleDialog({ node, onClose }: Props) {
  const [created, setCreated] = useState<Created | null>(null);
  const { title, does, doesNot } = actions.rebootstrap;
  const create = useChange<Created>({
    send: (call, idempotencyKey) => call(createBundle, { params: { node_id: node.id }, body: {}, idempotencyKey }),
    onDone: setCreated,
  });
  if (created) return <Apply bundle={created} onClose={onClose} />;
  return (
    <FormDialog open onClose={onClose} title={`${title}: ${node.name}`} action={title} mutation={create}>
      <Effects does={does} doesNot={doesNot} />
    </FormDialog>
  );
}

function Apply({ bundle, onClose }: { bundle: Created; onClose: () => void }) {
  const { node_id, node_name, seq, line, root_sha256, expires_at } = bundle;
  return (
    <Dialog open keepOpen onClose={onClose} title={`Recovery bundle for ${node_name}`}>
      <div className="space-y-5">
        <StatusMark state="degraded">Shown only once. Copy or save it before you close this dialog.</StatusMark>
        <p>
          Run one of these as root on {node_name}. The bundle works once, only for this node, and expires in{" "}
          <TimeLeft until={expires_at} />.
        </p>
        <CopyField label="Command with the bundle" value={`holdfast agent bundle apply --line ${line}`} />
        <p>
          Or <SaveButton name={`${node_name}.bundle-${seq}.json`} content={bundle.bundle} />, copy the file to the
          host and run <Code>holdfast agent bundle apply &lt;file&gt;</Code>.
        </p>
        <ul aria-label="Options" className="list-disc space-y-1 pl-4 text-sm text-ink-muted">
          <li>
            If the host cannot verify the bundle, add <Code>{`--root-sha256 ${root_sha256}`}</Code>
          </li>
          <li>
            If the host lost its state directory, add <Code>{`--new-state --node ${node_id}`}</Code>
          </li>
        </ul>
      </div>
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function SaveButton({ name, content }: { name: string; content: unknown }) {
  const save = () => {
    const url = URL.createObjectURL(
      new Blob([`${JSON.stringify(content, null, 2)}\n`], { type: "application/json" }),
    );
    const link = Object.assign(document.createElement("a"), { href: url, download: name });
    link.click();
    URL.revokeObjectURL(url);
  };
  return <Button onClick={save}>Save it as a file</Button>;
}
