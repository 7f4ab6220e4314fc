// The form behind a one-time link. Sending it uses the link up and signs the person in.

import { codeOf } from "@holdfast/contracts/client";
import { redeemLink } from "@holdfast/contracts/endpoints/sign-in";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { call } from "../../api.ts";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Checkbox, RadioGroup, TextField } from "../../design/forms/Field.tsx";
import { PasswordField } from "../../design/forms/PasswordField.tsx";
import { minimumPasswordLength } from "../../design/forms/password-hint.ts";
import { EntryFrame } from "../../design/layout/EntryFrame.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { meQuery } from "../../session.ts";
import { DeadLink } from "./DeadLink.tsx";
import { formOfLink, type LinkFacts, type Standing } from "./link-form.ts";

const deadly = new Set<string | undefined>(["link_used", "link_expired", "link_unknown"]);

export function LinkFormView({ secret, link }: { secret: string; link: LinkFacts }) {
  const [standing, setStanding] = useState<Standing>("new");
  const [revokeTokens, setRevokeTokens] = useState(false);
  const form = formOfLink(link, standing);
  const router = useRouter();
  const queryClient = useQueryClient();
  const [email, setEmail] = useState(link.email ?? "");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [tooShort, setTooShort] = useState(false);
  const redeem = useMutation({
    mutationFn: () =>
      call(redeemLink, {
        body: {
          ...{ secret, password, revoke_tokens: form.offersRevocation && revokeTokens },
          ...(form.asksEmail ? { email } : {}),
          ...(form.asksName ? { name } : {}),
        },
      }),
    onSuccess: (me) => {
      queryClient.clear();
      queryClient.setQueryData(meQuery.queryKey, me);
      router.history.replace("/");
    },
  });
  const short = form.password === "new" && password.length < minimumPasswordLength;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTooShort(short);
    if (!short && !redeem.isPending) redeem.mutate();
  };
  if (deadly.has(codeOf(redeem.error))) return <DeadLink error={redeem.error} />;
  return (
    <EntryFrame title={form.title} intro={form.intro}>
      <form onSubmit={submit} className="space-y-5" aria-label={form.title}>
        {link.role && (
          <p className="flex items-center gap-2">
            You will join as <Tag strong>{link.role}</Tag>
          </p>
        )}
        <TextField
          label="Email"
          name="username"
          type="email"
          autoComplete="username"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          readOnly={!form.asksEmail}
          hint={form.asksEmail ? "You sign in with this address. Holdfast sends no email." : undefined}
          required
          autoFocus={form.asksEmail}
        />
        {form.asksStanding && <StandingField value={standing} onChange={setStanding} />}
        {form.asksName && (
          <TextField
            label="Your name"
            name="name"
            autoComplete="name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            maxLength={100}
            required
            autoFocus={!form.asksEmail && !form.asksStanding}
          />
        )}
        <PasswordField
          label={form.password === "new" ? "New password" : "Password"}
          kind={form.password}
          value={password}
          onChange={setPassword}
          error={tooShort && short ? "The password is too short." : undefined}
          autoFocus={!form.asksEmail && !form.asksName && !form.asksStanding}
        />
        {form.offersRevocation && (
          <Checkbox
            label="Also revoke every token I made"
            hint="API tokens, pairing and bootstrap tokens, invitations. Recommended if someone else may have had access to your account."
            checked={revokeTokens}
            onChange={(event) => setRevokeTokens(event.currentTarget.checked)}
          />
        )}
        {redeem.error && <ErrorNotice key={redeem.submittedAt} error={redeem.error} />}
        <Button type="submit" look="primary" busy={redeem.isPending} className="w-full">
          {redeem.isPending ? "Saving…" : form.action}
        </Button>
        <p className="text-sm text-ink-muted">
          The link works once and expires <When at={link.expires_at} />.
        </p>
      </form>
    </EntryFrame>
  );
}

const standings: { value: Standing; label: string }[] = [
  { value: "new", label: "I am new here" },
  { value: "existing", label: "I have an account" },
];

function StandingField({ value, onChange }: { value: Standing; onChange: (standing: Standing) => void }) {
  return <RadioGroup legend="Your account" options={standings} value={value} onChange={onChange} />;
}
