// What the page says in passing: that something worked, and that the server cannot be reached. It floats over
// most pages; a terminal has it in its header, where it covers neither a prompt nor a button.

import { useReach } from "../../connection.ts";
import { StatusMark } from "../../design/StatusMark.tsx";
import { Toasts, useToasts } from "../../design/Toast.tsx";

export function FloatingNotices() {
  const reach = useReach();
  return (
    <>
      <div role="status" className="pointer-events-none fixed inset-x-4 bottom-4 z-[55] flex justify-center">
        {reach === "unreachable" && (
          <p className="flex flex-wrap gap-x-2 rounded-md border border-degraded/50 bg-degraded-soft px-4 py-2.5 shadow-raised">
            <StatusMark state="degraded">Holdfast cannot be reached.</StatusMark>
            <span>What you see may be old. Trying again every few seconds; no need to reload.</span>
          </p>
        )}
      </div>
      <Toasts />
    </>
  );
}

export function HeaderNotices() {
  const reach = useReach();
  const newest = useToasts().at(-1);
  return (
    <div role="status" aria-label="Messages" className="flex min-w-0 shrink gap-2 text-sm">
      {newest && (
        <span className="truncate rounded-sm bg-surface px-2 py-0.5">
          <StatusMark state={newest.state}>
            <span className="text-ink">{newest.text}</span>
          </StatusMark>
        </span>
      )}
      {!newest && reach === "unreachable" && (
        <span
          className="truncate rounded-sm bg-surface px-2 py-0.5 max-sm:hidden"
          title="The control plane does not answer. An open terminal does not need it."
        >
          <StatusMark state="degraded">Holdfast cannot be reached</StatusMark>
        </span>
      )}
    </div>
  );
}
