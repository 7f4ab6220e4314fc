// Sign-in by email and password.

import { signIn } from "@holdfast/contracts/endpoints/sign-in";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { call } from "../../api.ts";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { PasswordField } from "../../design/forms/PasswordField.tsx";
import { EntryFrame } from "../../design/layout/EntryFrame.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { meQuery } from "../../session.ts";

const route = getRouteApi("/sign-in");

export function SignInPage() {
  const { to = "/" } = route.useSearch();
  const router = useRouter();
  const queryClient = useQueryClient();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const enter = useMutation({
    mutationFn: () => call(signIn, { body: { email, password } }),
    onSuccess: (me) => {
      queryClient.clear();
      queryClient.setQueryData(meQuery.queryKey, me);
      router.history.push(to);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!enter.isPending) enter.mutate();
  };
  return (
    <EntryFrame title="Sign in" intro={to === "/" ? undefined : "Sign in to continue."}>
      <form onSubmit={submit} className="space-y-5" aria-label="Sign in">
        <TextField
          label="Email"
          name="username"
          type="email"
          autoComplete="username"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          required
          autoFocus
        />
        <PasswordField label="Password" kind="current" value={password} onChange={setPassword} />
        {enter.error && <ErrorNotice key={enter.submittedAt} error={enter.error} />}
        <Button type="submit" look="primary" busy={enter.isPending} className="w-full">
          {enter.isPending ? "Signing in…" : "Sign in"}
        </Button>
      </form>
      <p className="mt-8 border-t border-line pt-5 text-sm text-ink-muted">
        No account? Ask an owner of your organization for an invitation. Password lost? Whoever runs this server
        makes you a link there: <Code>npx holdfast admin link --email …</Code>
      </p>
    </EntryFrame>
  );
}
