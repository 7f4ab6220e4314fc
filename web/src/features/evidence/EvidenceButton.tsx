// One click: creates an evidence bundle and saves it. A failure stays in place, beside the button.

import { createEvidence, downloadEvidence } from "@holdfast/contracts/endpoints/evidence";
import type { LogReplica } from "@holdfast/contracts/endpoints/logs";
import { Button } from "../../design/controls/Button.tsx";
import { Dialog } from "../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { newIdempotencyKey } from "../../idempotency.ts";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

export function EvidenceButton({ subjectId }: { subjectId: string }) {
  const { may } = useActing();
  const create = useChange({
    send: async (call, idempotencyKey) => {
      const created = await call(createEvidence, { body: { subject_id: subjectId }, idempotencyKey });
      const { content, file_name } = await call(downloadEvidence, { params: { evidence_id: created.id } });
      return { content, name: file_name, replicas: created.replicas };
    },
    onDone: ({ content, name, replicas }) => {
      save(name, bytesOf(content));
      const missing = replicas.filter(({ state }) => state === "unreachable");
      toast(`Saved ${name}`);
      if (missing.length > 0) toast(`Log lines are missing of: ${namesOf(missing)}`, "degraded");
    },
  });
  if (!may("nodes:diagnose")) return null;
  return (
    <>
      <Button onClick={() => create.mutate(newIdempotencyKey())} busy={create.isPending}>
        {create.isPending ? "Collecting evidence…" : "Evidence bundle"}
      </Button>
      {create.error && (
        <Dialog open title="The evidence bundle was not created" onClose={create.reset}>
          <ErrorNotice error={create.error} />
        </Dialog>
      )}
    </>
  );
}

function namesOf(replicas: readonly LogReplica[]): string {
  return replicas.map(({ process, host }) => (host === null ? process : `${process} on ${host}`)).join(", ");
}

/** `Uint8Array.fromBase64` is missing in browsers of the year before. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function save(name: string, bytes: Uint8Array<ArrayBuffer>): void {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/gzip" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads it after the click has returned.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
