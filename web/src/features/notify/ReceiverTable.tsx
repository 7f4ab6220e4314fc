// Receivers as rows, with a test for each.

import { type Receiver, testReceiver } from "@holdfast/contracts/endpoints/notify";
import { MenuItem } from "../../design/controls/Menu.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useChange } from "../../use-change.ts";

type ReceiverTableProps = {
  receivers: readonly Receiver[];
  /** Undefined: the reader may not change receivers. */
  onRemove?: ((receiver: Receiver) => void) | undefined;
};

export function ReceiverTable({ receivers, onRemove }: ReceiverTableProps) {
  const columns = ["Address", "Kind", "State", "Last delivered", "Created by", <ActionsHeader key="actions" />];
  return (
    <Table label="Receivers" columns={columns}>
      {receivers.map((receiver) => (
        <ReceiverRow key={receiver.id} receiver={receiver} onRemove={onRemove && (() => onRemove(receiver))} />
      ))}
    </Table>
  );
}

function ReceiverRow({ receiver, onRemove }: { receiver: Receiver; onRemove?: (() => void) | undefined }) {
  const { id, address, kind, last_delivered_at, last_failed_at } = receiver;
  const test = useChange({
    send: (call) => call(testReceiver, { params: { receiver_id: id } }),
    said: `Test message to ${address} queued. Its delivery is below.`,
  });
  const send = () => test.mutate("", { onError: (error) => toast(error.message, "failed") });
  return (
    <tr>
      <Cell className="min-w-56 font-medium break-all">{address}</Cell>
      <Cell>{kind === "webhook" ? "Webhook" : "Mail"}</Cell>
      <Cell>
        {last_failed_at ? (
          <StatusMark state="failed">Last attempt failed</StatusMark>
        ) : last_delivered_at ? (
          <StatusMark state="ok">Delivered</StatusMark>
        ) : (
          <StatusMark state="unknown">Nothing sent yet</StatusMark>
        )}
      </Cell>
      <Cell className="text-ink-muted">{last_delivered_at ? <When at={last_delivered_at} /> : "Never"}</Cell>
      <Cell className="max-w-52 truncate text-ink-muted">{receiver.created_by}</Cell>
      {onRemove ? (
        <RowMenu label={`Actions for receiver ${address}`}>
          <MenuItem onClick={send}>Send test message</MenuItem>
          <MenuItem danger onClick={onRemove}>
            Remove
          </MenuItem>
        </RowMenu>
      ) : (
        <Cell />
      )}
    </tr>
  );
}
