// Shows a secret for the only time. It stays until it is closed on purpose.

import type { ReactNode } from "react";
import { Button } from "../controls/Button.tsx";
import { CopyField } from "../values/Copy.tsx";
import { StatusMark } from "../values/StatusMark.tsx";
import { Dialog, DialogActions } from "./Dialog.tsx";

type ShownOnceProps = { onClose: () => void; title: string; label: string; value: string; children: ReactNode };

export function ShownOnceDialog({ onClose, title, label, value, children }: ShownOnceProps) {
  return (
    <Dialog open keepOpen onClose={onClose} title={title} description={children}>
      <p className="mb-4">
        <StatusMark state="degraded">Shown only once. Copy it before you close this dialog.</StatusMark>
      </p>
      <CopyField label={label} value={value} />
      <DialogActions>
        <Button onClick={onClose}>Done</Button>
      </DialogActions>
    </Dialog>
  );
}
