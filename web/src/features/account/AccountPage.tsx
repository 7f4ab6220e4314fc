// The person's own account: profile, password and sessions.

import { changePassword } from "@holdfast/contracts/endpoints/me";
import { countIssued } from "@holdfast/contracts/public/issued-tokens";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { call } from "../../api.ts";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { PasswordField } from "../../design/forms/PasswordField.tsx";
import { minimumPasswordLength } from "../../design/forms/password-hint.ts";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { useMe } from "../../session.ts";
import { RevokeTokensField } from "./RevokeTokensField.tsx";
import { SessionsCard } from "./SessionsCard.tsx";

export function AccountPage() {
  const me = useMe();
  return (
    <>
      <PageHeader title="Account" />
      <div className="grid max-w-4xl grid-cols-[minmax(0,1fr)] gap-6">
        <Card title="You" note={me.operator && <Tag strong>platform operator</Tag>}>
          <dl className="grid grid-cols-[8.5rem_minmax(0,1fr)] gap-y-2 px-5 py-4">
            <dt className="text-ink-muted">Name</dt>
            <dd>{me.name}</dd>
            <dt className="text-ink-muted">Email</dt>
            <dd>{me.email ?? "none"}</dd>
            <dt className="text-ink-muted">Organizations</dt>
            <dd>
              <ul className="space-y-1">
                {me.organizations.map((each) => (
                  <li key={each.id} className="flex items-center gap-2">
                    {each.name} <Tag>{each.role}</Tag>
                  </li>
                ))}
              </ul>
            </dd>
          </dl>
        </Card>
        <Card title="Password" note="Changing it ends your other sessions and closes your terminals">
          <PasswordForm email={me.email ?? ""} />
        </Card>
        <SessionsCard />
      </div>
    </>
  );
}

function PasswordForm({ email }: { email: string }) {
  const [current, setCurrent] = useState("");
  const [wanted, setWanted] = useState("");
  const [tooShort, setTooShort] = useState(false);
  const [revokeTokens, setRevokeTokens] = useState(false);
  const queryClient = useQueryClient();
  const change = useMutation({
    mutationFn: () =>
      call(changePassword, {
        body: { current_password: current, new_password: wanted, revoke_tokens: revokeTokens },
      }),
    onSuccess: async ({ tokens }) => {
      setCurrent("");
      setWanted("");
      setRevokeTokens(false);
      toast(tokens.length === 0 ? "Password changed" : `Password changed; revoked ${countIssued(tokens)}`);
      await queryClient.invalidateQueries({ queryKey: ["me"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const short = wanted.length < minimumPasswordLength;
    setTooShort(short);
    if (!short && !change.isPending) change.mutate();
  };
  return (
    <form onSubmit={submit} className="max-w-sm space-y-5 px-5 py-5" aria-label="Change password">
      <input type="email" autoComplete="username" value={email} readOnly hidden />
      <PasswordField label="Current password" kind="current" value={current} onChange={setCurrent} />
      <PasswordField
        label="New password"
        kind="new"
        value={wanted}
        onChange={setWanted}
        error={tooShort && wanted.length < minimumPasswordLength ? "The password is too short." : undefined}
      />
      <RevokeTokensField checked={revokeTokens} onChange={setRevokeTokens} />
      {change.error && <ErrorNotice key={change.submittedAt} error={change.error} />}
      <Button type="submit" look="primary" busy={change.isPending}>
        Change password
      </Button>
    </form>
  );
}
