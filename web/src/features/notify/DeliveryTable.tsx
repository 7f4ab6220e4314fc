// Deliveries as rows, with what the receiver returned.

import type { Delivery } from "@holdfast/contracts/endpoints/notify";
import { Cell, Table } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { deliveryMarks } from "./delivery-marks.ts";

export function DeliveryTable({ deliveries }: { deliveries: readonly Delivery[] }) {
  return (
    <Table label="Deliveries" columns={["Time", "State", "Message", "Receiver", "Attempts", "Answer"]}>
      {deliveries.map((delivery) => (
        <DeliveryRow key={delivery.id} delivery={delivery} />
      ))}
    </Table>
  );
}

function DeliveryRow({ delivery }: { delivery: Delivery }) {
  const { state, title, severity, address, attempts, answer, next_attempt_at } = delivery;
  const mark = deliveryMarks[state];
  return (
    <tr>
      <Cell className="text-sm text-ink-muted">
        <When at={delivery.created_at} exact />
      </Cell>
      <Cell title={mark.meaning}>
        <StatusMark state={mark.state}>{mark.word}</StatusMark>
      </Cell>
      <Cell className="min-w-56">
        {severity && <span className="mr-1.5 text-sm text-ink-muted">{severity}</span>}
        {title}
      </Cell>
      <Cell className="max-w-64 truncate" title={address}>
        {address}
      </Cell>
      <Cell className="text-sm whitespace-nowrap text-ink-muted">
        {attempts}
        {attempts > 0 && next_attempt_at && (
          <>
            , next <When at={next_attempt_at} />
          </>
        )}
      </Cell>
      <Cell className="max-w-80 truncate text-sm text-ink-muted" title={answer ?? undefined}>
        {answer ?? "None yet"}
      </Cell>
    </tr>
  );
}
