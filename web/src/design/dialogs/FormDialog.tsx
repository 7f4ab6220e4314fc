// A dialog with a form that creates or changes one thing. As long as its content stays the same, so
// does its idempotency key: pressing again after a lost answer does not create twice.

import { CallError } from "@holdfast/contracts/client";
import type { UseMutationResult } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { newIdempotencyKey } from "../../idempotency.ts";
import { Button } from "../controls/Button.tsx";
import { ErrorNotice } from "../feedback/ErrorNotice.tsx";
import { Dialog, DialogActions } from "./Dialog.tsx";

type FormDialogProps = {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  action: string;
  /** It takes something away. */
  danger?: boolean;
  /** The form shows at its fields what the server did not accept. */
  marksFields?: boolean;
  mutation: Pick<
    UseMutationResult<unknown, Error, string>,
    "mutate" | "isPending" | "error" | "reset" | "submittedAt"
  >;
  children: ReactNode;
};

export function FormDialog({
  open,
  onClose,
  title,
  description,
  action,
  danger,
  marksFields,
  mutation,
  children,
}: FormDialogProps) {
  const { mutate, isPending, error, reset, submittedAt } = mutation;
  const key = useRef<string | null>(null);
  useEffect(() => {
    if (!open) return;
    key.current = null;
    reset();
  }, [open, reset]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isPending) return;
    if (error instanceof CallError && !error.envelope.retryable) key.current = null;
    key.current ??= newIdempotencyKey();
    mutate(key.current);
  };
  const forgetKey = () => {
    key.current = null;
  };
  return (
    <Dialog open={open} onClose={onClose} title={title} description={description}>
      <form onSubmit={submit} onChange={forgetKey} className="space-y-5">
        {children}
        {error && <ErrorNotice key={submittedAt} error={error} withoutFields={marksFields} />}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look={danger ? "danger" : "primary"} busy={isPending}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
