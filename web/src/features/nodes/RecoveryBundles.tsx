// Recovery bundles that can still be used. Their secrets are not shown again.

import { type BundleSummary, listBundles, revokeBundle } from "@holdfast/contracts/endpoints/bundles";
import { useState } from "react";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { OpenCredentials } from "./OpenCredentials.tsx";

export function RecoveryBundles() {
  const { org, call } = useActing();
  const bundles = useListing<BundleSummary>({
    key: ["org", org.id, "recovery-bundles", "list"],
    page: ({ cursor, signal }) => call(listBundles, { query: { cursor }, signal }),
    refetchInterval: useRefetchInterval(),
  });
  const [revoking, setRevoking] = useState<BundleSummary | null>(null);
  return (
    <>
      <OpenCredentials
        title="Open recovery bundles"
        open={bundles.items?.filter(({ state }) => state === "created")}
        purposeOf={({ node_name }) => node_name}
        onRevoke={setRevoking}
      />
      {revoking && <RevokeDialog bundle={revoking} onClose={() => setRevoking(null)} />}
    </>
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
