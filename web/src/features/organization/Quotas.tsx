// How many allocations may exist at a time, and how many do.

import { getQuotas, type Quotas as Limits, updateQuotas } from "@holdfast/contracts/endpoints/quotas";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

export function Quotas() {
  const { org, call, may } = useActing();
  const [changing, setChanging] = useState(false);
  const { data } = useQuery({
    queryKey: ["org", org.id, "quotas"],
    queryFn: ({ signal }) => call(getQuotas, { signal }),
  });
  if (!data) return null;
  const ownLimits = data.members.filter(({ own_limit }) => own_limit);
  return (
    <Card
      title="Allocation limits"
      className="mt-10"
      note={
        may("allocations:admin") && (
          <Button className="-my-1.5 -mr-2" onClick={() => setChanging(true)}>
            Change
          </Button>
        )
      }
    >
      <Facts className="px-5 py-1">
        <Fact name="Organization">
          {data.organization.used} of {data.organization.limit} in use
        </Fact>
        {data.own && (
          <Fact name="You">
            {data.own.used} of {data.own.limit} in use
          </Fact>
        )}
        <Fact name="Each member">up to {data.per_owner}</Fact>
        {ownLimits.length > 0 && (
          <Fact name="Own limits">
            {ownLimits.map(({ user_id, email, used, limit }) => (
              <span key={user_id} className="block">
                {email}: {used} of {limit} in use
              </span>
            ))}
          </Fact>
        )}
      </Facts>
      {changing && <ChangeDialog limits={data} onClose={() => setChanging(false)} />}
    </Card>
  );
}

function ChangeDialog({ limits, onClose }: { limits: Limits; onClose: () => void }) {
  const { org } = useActing();
  const isOperator = org.role === "operator";
  const [perOwner, setPerOwner] = useState(String(limits.per_owner));
  const [organization, setOrganization] = useState(String(limits.organization.limit));
  const change = useChange({
    send: (call) =>
      call(updateQuotas, {
        body: { per_owner: Number(perOwner), ...(isOperator ? { organization: Number(organization) } : {}) },
      }),
    said: "Changed the allocation limits",
    onDone: onClose,
  });
  const number = { type: "number", min: 0, max: 100_000, required: true } as const;
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Allocation limits"
      description="Every allocation that is not released counts. Existing allocations above a lower limit are kept."
      action="Change limits"
      mutation={change}
    >
      <TextField
        {...number}
        label="Each member"
        value={perOwner}
        onChange={(event) => setPerOwner(event.currentTarget.value)}
      />
      <TextField
        {...number}
        label="Organization"
        value={organization}
        readOnly={!isOperator}
        onChange={(event) => setOrganization(event.currentTarget.value)}
        hint={isOperator ? undefined : "Only the platform operator can change this limit."}
      />
    </FormDialog>
  );
}
