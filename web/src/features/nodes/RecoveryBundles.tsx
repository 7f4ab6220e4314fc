// Recovery bundles that can still be used. Their secrets are not shown again.

import { type BundleSummary, listBundles, revokeBundle } from "@holdfast/contracts/endpoints/bundles";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { TimeLeft, When } from "../../design/values/When.tsx";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

/** Renders nothing while there are none. */
export function RecoveryBundles() {
  const { org, call } = useActing();
  const bundles = useListing<BundleSummary>({
    key: ["org", org.id, "recovery-bundles", "list"],
    page: ({ cursor, signal }) => call(listBundles, { query: { cursor }, signal }),
    refetchInterval: useRefetchInterval(),
  });
  const [revoking, setRevoking] = useState<BundleSummary | null>(null);
  const open = bundles.items?.filter(({ state }) => state === "created") ?? [];
  if (open.length === 0) return null;
  return (
    <section className="mt-10" aria-labelledby="open-bundles">
      <h2 id="open-bundles" className="mb-3 text-lg font-semibold">
        Open recovery bundles
      </h2>
      <Table
        label="Open recovery bundles"
        columns={[
          "For",
          "Expires in",
          { wide: "Created" },
          { wide: "Created by" },
          <ActionsHeader key="actions" />,
        ]}
      >
        {open.map((bundle) => (
          <tr key={bundle.id}>
            <Cell>{bundle.node_name}</Cell>
            <Cell>
              <TimeLeft until={bundle.expires_at} />
            </Cell>
            <Cell className={`${wideOnly} text-ink-muted`}>
              <When at={bundle.created_at} />
            </Cell>
            <Cell className={`${wideOnly} max-w-52 truncate text-ink-muted`}>{bundle.created_by}</Cell>
            <Cell className="w-0 px-2 py-0 text-right">
              <Button look="quiet" onClick={() => setRevoking(bundle)}>
                Revoke
              </Button>
            </Cell>
          </tr>
        ))}
      </Table>
      {revoking && <RevokeDialog bundle={revoking} onClose={() => setRevoking(null)} />}
    </section>
  );
}

function RevokeDialog({ bundle, onClose }: { bundle: BundleSummary; onClose: () => void }) {
  const revoke = useChange({
    send: (call) => call(revokeBundle, { params: { bundle_id: bundle.id } }),
    said: `Revoked the recovery bundle for ${bundle.node_name}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Revoke the recovery bundle for ${bundle.node_name}?`}
      action="Revoke bundle"
      onConfirm={() => revoke.mutate("")}
      busy={revoke.isPending}
      error={revoke.error}
    >
      <p>The file can no longer be applied. A node that was recovered with it keeps its identity.</p>
    </ConfirmDialog>
  );
}
