// The person's browser sessions. An unknown one can be ended here; after a theft, all of them.

import { endSession, listSessions, type Session, signOutEverywhere } from "@holdfast/contracts/endpoints/sessions";
import { describeUserAgent } from "@holdfast/contracts/words/user-agent";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api.ts";
import { Button } from "../../design/controls/Button.tsx";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { RevokeTokensField } from "./RevokeTokensField.tsx";

const sessionsQuery = queryOptions({
  queryKey: ["me", "sessions"],
  queryFn: ({ signal }) => call(listSessions, { signal }),
});

export function SessionsCard() {
  const sessions = useQuery(sessionsQuery);
  const [leaving, setLeaving] = useState(false);
  return (
    <Card title="Sessions" note="Browsers signed in to your account">
      <div className="space-y-4 px-5 py-5">
        {sessions.data ? (
          <SessionTable sessions={sessions.data.items} />
        ) : sessions.error ? (
          <ErrorNotice error={sessions.error} />
        ) : (
          <Loading what="your sessions" />
        )}
        <p className="text-ink-muted">
          Ending a session closes the terminals it opened. Command lines use API tokens, which are listed under
          Organization.
        </p>
        <Button onClick={() => setLeaving(true)}>Sign out everywhere</Button>
      </div>
      {leaving && <SignOutEverywhereDialog onClose={() => setLeaving(false)} />}
    </Card>
  );
}

function SessionTable({ sessions }: { sessions: readonly Session[] }) {
  const queryClient = useQueryClient();
  const end = useMutation({
    mutationFn: (session: Session) => call(endSession, { params: { session_id: session.id } }),
    onSuccess: (_, session) => toast(`Session ended: ${describeUserAgent(session.user_agent)}`),
    onSettled: () => queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
  });
  return (
    <>
      <Table
        label="Sessions"
        columns={["Browser", "Signed in", "Last seen", { wide: "Terminals" }, <ActionsHeader key="actions" />]}
      >
        {sessions.map((session) => (
          <tr key={session.id}>
            <Cell>
              <span title={session.user_agent ?? undefined}>{describeUserAgent(session.user_agent)}</span>{" "}
              {session.current && <Tag strong>this one</Tag>}
            </Cell>
            <Cell>
              <Place at={session.created_at} address={session.address} />
            </Cell>
            <Cell>
              <Place at={session.last_seen_at} address={session.last_address} />
            </Cell>
            <Cell className={`${wideOnly} text-ink-muted`}>{session.terminals}</Cell>
            <Cell className="w-0 text-right">
              {!session.current && (
                <Button
                  busy={end.isPending && end.variables.id === session.id}
                  aria-label={`End session ${describeUserAgent(session.user_agent)} from ${session.address ?? "unknown"}`}
                  onClick={() => end.mutate(session)}
                >
                  End
                </Button>
              )}
            </Cell>
          </tr>
        ))}
      </Table>
      {end.error && (
        <div className="mt-4">
          <ErrorNotice key={end.submittedAt} error={end.error} />
        </div>
      )}
    </>
  );
}

function Place({ at, address }: { at: string; address: string | null }) {
  return (
    <>
      <When at={at} />
      <span className="block font-mono text-sm text-ink-muted">{address ?? "unknown"}</span>
    </>
  );
}

function SignOutEverywhereDialog({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const [revokeTokens, setRevokeTokens] = useState(false);
  const leave = useMutation({
    mutationFn: () => call(signOutEverywhere, { body: { revoke_tokens: revokeTokens } }),
    onSuccess: async () => {
      await navigate({ to: "/sign-in" });
      queryClient.clear();
    },
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title="Sign out everywhere?"
      action="Sign out everywhere"
      onConfirm={() => leave.mutate()}
      busy={leave.isPending}
      error={leave.error}
    >
      <p>
        All your sessions end, including this one, and all your terminals close. Programs running in them are
        ended.
      </p>
      <RevokeTokensField checked={revokeTokens} onChange={setRevokeTokens} />
    </ConfirmDialog>
  );
}
