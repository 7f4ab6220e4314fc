// Two machines that use one identity: which they are, and the decision which of them keeps the node.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { type Node, resolveClone } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { Effects } from "./Effects.tsx";
import type { NewToken } from "./JoinDialog.tsx";

type Clone = NonNullable<Explanation["clone"]>;
type Machine = Clone["instances"][number];
type Of = Pick<Node, "id" | "name">;

type DecisionProps = {
  node: Of;
  clone: Clone /** With the token of the machine that is kept, which is shown once. */;
  onKept: (token: NewToken) => void;
};

/** Is gone as soon as it was decided: the token is shown by whoever shows this. */
export function CloneDecision({ node, clone, onKept }: DecisionProps) {
  const { may } = useActing();
  const [kept, setKept] = useState<Machine | null>(null);
  const { instances, recommended, why } = clone;
  return (
    <section aria-labelledby="two-machines" className="mt-2">
      <h2 id="two-machines" className="mb-2 font-semibold">
        Machines with this identity
      </h2>
      <Table
        label="Machines with this identity"
        columns={[
          "Machine",
          "Address",
          { wide: "First seen" },
          "Last seen",
          { wide: "Boot id" },
          <ActionsHeader key="actions" />,
        ]}
      >
        {instances.map((machine) => (
          <tr key={machine.holder}>
            <Cell>
              {nameOf(machine)} {machine.holder === recommended && <Tag>Probably the original</Tag>}
            </Cell>
            <Cell>{machine.address ?? "unknown"}</Cell>
            <Cell className={`${wideOnly} text-ink-muted`}>
              <When at={machine.first_seen_at} />
            </Cell>
            <Cell>
              <When at={machine.last_seen_at} />
            </Cell>
            <Cell className={`${wideOnly} max-w-40 truncate font-mono text-ink-muted`}>{machine.boot_id}</Cell>
            <Cell className="w-0 px-2 py-0 text-right">
              {may("nodes:write") && (
                <Button onClick={() => setKept(machine)} aria-label={`Keep ${nameOf(machine)}`}>
                  Keep
                </Button>
              )}
            </Cell>
          </tr>
        ))}
      </Table>
      <ul aria-label="Why" className="mt-2 list-disc pl-4 text-sm text-ink-muted">
        {why.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      {kept && <KeepDialog {...{ node, kept, instances, onKept }} onClose={() => setKept(null)} />}
    </section>
  );
}

const nameOf = ({ holder, hostname }: Machine) => `${hostname ?? "unknown host"} (holder ${holder})`;

type KeepProps = Pick<DecisionProps, "node" | "onKept"> & {
  kept: Machine;
  instances: readonly Machine[];
  onClose: () => void;
};

function KeepDialog({ node, kept, instances, onClose, onKept }: KeepProps) {
  const keep = useChange<NewToken>({
    send: (call, idempotencyKey) =>
      call(resolveClone, { params: { node_id: node.id }, body: { keep: kept.holder }, idempotencyKey }),
    onDone: (token) => {
      onKept(token);
      onClose();
    },
  });
  const others = instances.filter((one) => one !== kept).map(nameOf);
  return (
    <FormDialog
      open
      danger
      onClose={onClose}
      title={`Keep ${nameOf(kept)} as ${node.name}?`}
      action="Revoke both and keep it"
      mutation={keep}
    >
      <Effects
        does={[
          "Revokes the certificates and tokens that both machines have.",
          `Creates a token with which ${nameOf(kept)} gets a new key, and shows the command for it.`,
        ]}
        doesNot={[
          `It does not clean ${others.join(" and ")}: reimage it before it is used again.`,
          `It does not end the quarantine: reactivate ${node.name} when it is online again.`,
        ]}
      />
    </FormDialog>
  );
}
