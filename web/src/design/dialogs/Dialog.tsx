// Dialogs: a form in the middle, a sheet from the right for details, and a question before
// something is lost. Focus stays inside and returns to where it was.

import { AlertDialog } from "@base-ui/react/alert-dialog";
import { Dialog as Base } from "@base-ui/react/dialog";
import { type ReactNode, useRef } from "react";
import { Button, IconButton } from "../controls/Button.tsx";
import { classes } from "../controls/classes.ts";
import { Icon } from "../controls/Icon.tsx";
import { ErrorNotice } from "../feedback/ErrorNotice.tsx";

const backdropClasses =
  "fixed inset-0 z-40 bg-[rgb(4_16_18_/_55%)] transition-opacity duration-150 " +
  "data-starting-style:opacity-0 data-ending-style:opacity-0";

const panelClasses =
  "fixed z-50 overflow-y-auto border border-line bg-surface text-ink shadow-raised outline-none transition " +
  "duration-150 data-starting-style:opacity-0 data-ending-style:opacity-0";

const middleClasses =
  "top-[10dvh] left-1/2 max-h-[80dvh] w-[calc(100vw-2rem)] max-w-lg -translate-x-1/2 rounded-lg p-6 " +
  "data-starting-style:translate-y-1";

const sheetClasses =
  "inset-y-0 right-0 w-full max-w-xl border-y-0 border-r-0 p-6 data-starting-style:translate-x-4 data-ending-style:translate-x-4";

type DialogProps = {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  place?: "middle" | "sheet";
  /** What is shown here is not shown again, so neither Escape nor a click outside may lose it. */
  keepOpen?: boolean;
  children: ReactNode;
};

export function Dialog({ open, onClose, title, description, place = "middle", keepOpen, children }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null);
  return (
    <Base.Root
      open={open}
      onOpenChange={(next, { reason }) => next || (keepOpen && reason === "escape-key") || onClose()}
      disablePointerDismissal={keepOpen}
    >
      <Base.Portal>
        <Base.Backdrop className={backdropClasses} />
        <Base.Popup
          ref={popup}
          initialFocus={() => popup.current?.querySelector<HTMLElement>("input, select, textarea") ?? true}
          className={classes(panelClasses, place === "middle" ? middleClasses : sheetClasses)}
        >
          <div className="mb-5 flex items-start justify-between gap-4">
            <div className="min-w-0">
              <Base.Title className="text-xl font-semibold tracking-tight">{title}</Base.Title>
              {description && (
                <Base.Description className="mt-1 text-ink-muted" render={<div />}>
                  {description}
                </Base.Description>
              )}
            </div>
            <Base.Close render={<IconButton label="Close" className="-mt-1 -mr-2" />}>
              <Icon name="close" />
            </Base.Close>
          </div>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

type ConfirmProps = {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What will be lost. */
  children: ReactNode;
  /** The verb and its object, such as "Revoke token". */
  action: string;
  onConfirm: () => void;
  busy: boolean;
  error: unknown;
  /** Where the keyboard goes when it closes; left out: back to where it was. */
  afterwards?: () => HTMLElement | undefined;
};

export function ConfirmDialog({ open, onClose, title, children, action, afterwards, ...rest }: ConfirmProps) {
  const { onConfirm, busy, error } = rest;
  return (
    <AlertDialog.Root open={open} onOpenChange={(next) => next || onClose()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={backdropClasses} />
        <AlertDialog.Popup
          finalFocus={afterwards && (() => afterwards() ?? true)}
          className={classes(panelClasses, middleClasses)}
        >
          <AlertDialog.Title className="text-xl font-semibold tracking-tight">{title}</AlertDialog.Title>
          <AlertDialog.Description className="mt-2 space-y-2 text-ink-muted" render={<div />}>
            {children}
          </AlertDialog.Description>
          {error ? (
            <div className="mt-4">
              <ErrorNotice error={error} />
            </div>
          ) : null}
          <DialogActions>
            <AlertDialog.Close render={<Button />}>Cancel</AlertDialog.Close>
            <Button look="danger" busy={busy} onClick={onConfirm}>
              {action}
            </Button>
          </DialogActions>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}

export function DialogActions({ children }: { children: ReactNode }) {
  return <div className="mt-6 flex flex-wrap justify-end gap-2">{children}</div>;
}
