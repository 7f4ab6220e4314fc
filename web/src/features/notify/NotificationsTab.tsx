// Who gets messages about incidents, and what was sent to them.

import { type Delivery, listDeliveries, listReceivers, type Receiver } from "@holdfast/contracts/endpoints/notify";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { useListing } from "../../listing.ts";
import { useActing } from "../../session.ts";
import { TabFrame } from "../organization/TabFrame.tsx";
import { DeliveryTable } from "./DeliveryTable.tsx";
import { NewReceiverDialog } from "./NewReceiverDialog.tsx";
import { ReceiverTable } from "./ReceiverTable.tsx";
import { RemoveReceiverDialog } from "./RemoveReceiverDialog.tsx";

/** What a test returned shows without a reload. */
const READ_AGAIN_MS = 5_000;

export function NotificationsTab() {
  const { org, may } = useActing();
  if (may("nodes:diagnose")) return <Notifications />;
  return (
    <EmptyState title="Your role cannot read notifications">
      <p>
        Your role in {org.name} is <Tag>{org.role}</Tag>. Admins and owners can read who gets messages about
        incidents.
      </p>
    </EmptyState>
  );
}

function Notifications() {
  const { org, call, may } = useActing();
  const writable = may("org:write");
  const receivers = useListing<Receiver>({
    key: ["org", org.id, "receivers"],
    page: async ({ signal }) => ({ ...(await call(listReceivers, { signal })), next_cursor: null }),
    refetchInterval: READ_AGAIN_MS,
  });
  const deliveries = useListing<Delivery>({
    key: ["org", org.id, "deliveries"],
    page: ({ cursor, signal }) => call(listDeliveries, { query: { cursor }, signal }),
    refetchInterval: READ_AGAIN_MS,
  });
  const [creating, setCreating] = useState(false);
  const [removing, setRemoving] = useState<Receiver | null>(null);
  return (
    <div className="grid gap-10">
      <TabFrame
        title="Receivers"
        intro="Each gets a message when an incident of severity P0, or one that requires security action, opens, and one when it is over."
        listing={receivers}
        action={
          writable && (
            <Button look="primary" onClick={() => setCreating(true)}>
              <Icon name="plus" />
              New receiver
            </Button>
          )
        }
        empty={
          <EmptyState title="No receivers yet">
            <p>Add a webhook or a mail address, so that somebody learns of an incident without looking here.</p>
          </EmptyState>
        }
      >
        {(items) => <ReceiverTable receivers={items} onRemove={writable ? setRemoving : undefined} />}
      </TabFrame>
      <TabFrame
        title="Deliveries"
        intro="Messages to receivers, newest first. One that is not accepted is sent again for about a day."
        listing={deliveries}
        empty={
          <EmptyState title="No messages yet">
            <p>Send a test message to a receiver to see whether it arrives.</p>
          </EmptyState>
        }
      >
        {(items) => <DeliveryTable deliveries={items} />}
      </TabFrame>
      {creating && <NewReceiverDialog onClose={() => setCreating(false)} />}
      {removing && <RemoveReceiverDialog receiver={removing} onClose={() => setRemoving(null)} />}
    </div>
  );
}
