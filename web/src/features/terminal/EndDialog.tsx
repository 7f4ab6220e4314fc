// Asks before a terminal ends with everything that runs in it.

import { closeTerminal } from "@holdfast/contracts/endpoints/terminals";
import { callIn } from "../../api.ts";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

type EndDialogProps = {
  terminalId: string;
  /** alice on rock-1, where several terminals are listed. */
  where?: string;
  /** It is the console of a VM, which goes on. */
  isConsole?: boolean;
  /** Of another organization than the one acted in. */
  orgId?: string;
  onClose: () => void;
  afterwards?: () => HTMLElement | undefined;
};

export function EndDialog({ terminalId, where, isConsole = false, orgId, onClose, afterwards }: EndDialogProps) {
  const { org } = useActing();
  const end = useChange({
    send: () => callIn(orgId ?? org.id)(closeTerminal, { params: { terminal_id: terminalId } }),
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      {...(afterwards ? { afterwards } : {})}
      title={where ? `End the terminal of ${where}?` : isConsole ? "Close this console?" : "End this shell?"}
      action={where ? "End terminal" : isConsole ? "Close console" : "End shell"}
      onConfirm={() => end.mutate("")}
      busy={end.isPending}
      error={end.error}
    >
      <p>
        {isConsole
          ? "The connection to the serial port is closed. The VM and what runs in it go on."
          : "The shell and every program that runs in it end. This cannot be undone."}
        {where === undefined && !isConsole && " If you only leave the page, they go on for a while."}
      </p>
    </ConfirmDialog>
  );
}
