// The organization's name, and the facts that do not change.

import { updateOrganization } from "@holdfast/contracts/endpoints/organizations";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageTitle } from "../../design/layout/PageHeader.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { meQuery, useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

export function SettingsTab() {
  const { org, may } = useActing();
  return (
    <section aria-label="Settings" className="grid max-w-2xl gap-6">
      <PageTitle>Organization settings</PageTitle>
      <Card title="Name">
        {may("org:write") ? (
          <RenameForm />
        ) : (
          <p className="px-5 py-4">
            {org.name} <span className="text-ink-muted">Only owners can change it.</span>
          </p>
        )}
      </Card>
      <Card title="For commands and requests">
        <dl className="grid grid-cols-[8.5rem_minmax(0,1fr)] gap-y-2 px-5 py-4">
          <dt className="text-ink-muted">Slug</dt>
          <dd className="font-mono text-sm">{org.slug}</dd>
          <dt className="text-ink-muted">Id</dt>
          <dd>
            <CopyableId id={org.id} label="Copy organization id" />
          </dd>
        </dl>
      </Card>
    </section>
  );
}

function RenameForm() {
  const { org } = useActing();
  const [name, setName] = useState(org.name);
  const queryClient = useQueryClient();
  const rename = useChange({
    send: (call) => call(updateOrganization, { params: { org_id: org.id }, body: { name } }),
    said: "Organization renamed",
    onDone: () => void queryClient.invalidateQueries({ queryKey: meQuery.queryKey }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!rename.isPending) rename.mutate("");
  };
  return (
    <form onSubmit={submit} className="space-y-4 px-5 py-5" aria-label="Rename organization">
      <div className="flex max-w-md items-end gap-2">
        <TextField
          label="Organization name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          maxLength={80}
          autoComplete="off"
          required
          className="flex-1"
        />
        <Button type="submit" look="primary" busy={rename.isPending} disabled={name.trim() === org.name}>
          Rename
        </Button>
      </div>
      {rename.error && <ErrorNotice key={rename.submittedAt} error={rename.error} />}
    </form>
  );
}
