// Pairs an agent: a command for its machine, shown once, and whether an agent has connected since.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { createAgentPairingToken, type ExecutionAgent } from "@holdfast/contracts/endpoints/agents";
import { type ReactNode, useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Dialog, DialogActions } from "../../design/dialogs/Dialog.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { CopyBlock } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useNow } from "../../design/values/use-now.ts";
import { TimeLeft } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { connectCommand, parsedTags } from "./connect-command.ts";
import { useAgents } from "./queries.ts";

type PairDialogProps = { known: readonly ExecutionAgent[]; onClose: () => void };
type Token = AnswerOf<typeof createAgentPairingToken>;

export function PairDialog({ known, onClose }: PairDialogProps) {
  const { org } = useActing();
  const [tags, setTags] = useState("");
  const [token, setToken] = useState<Token | null>(null);
  const create = useChange({
    send: (call, idempotencyKey) => call(createAgentPairingToken, { params: { org_id: org.id }, idempotencyKey }),
    onDone: setToken,
  });
  if (token) return <Command token={token} tags={parsedTags(tags)} known={known} onClose={onClose} />;
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Pair an agent"
      description="Creates a command that works once, for 15 minutes."
      action="Create command"
      mutation={create}
    >
      <TextField
        label="Tags"
        optional
        value={tags}
        onChange={(event) => setTags(event.currentTarget.value)}
        hint="Separated by commas. Steps choose agents by tag, or by group with a tag such as group:alpha."
        placeholder="east, group:alpha"
        autoComplete="off"
        spellCheck={false}
        maxLength={1_000}
      />
    </FormDialog>
  );
}

type CommandProps = PairDialogProps & { token: Token; tags: readonly string[] };

function Command({ token, tags, known, onClose }: CommandProps) {
  const { data } = useAgents({ watchful: true });
  // As they were when the command was created: the list goes on to change.
  const [before] = useState(() => new Set(known.map(({ id }) => id)));
  const paired = data?.find(({ id }) => !before.has(id));
  return (
    <Dialog
      open
      keepOpen={!paired}
      onClose={onClose}
      title="Pair an agent"
      description="The agent connects to this server; the machine needs no open port."
    >
      <div className="space-y-5">
        {!paired && (
          <>
            <StatusMark state="degraded">Shown only once. Copy it before you close this dialog.</StatusMark>
            <CopyBlock label="Connect command" value={connectCommand(token.token, window.location.origin, tags)} />
            <p className="text-sm text-ink-muted">
              Run it on the machine on which steps are to run. It stores the agent&rsquo;s credentials in{" "}
              <Code>~/.holdfast/agent.json</Code>; after that, <Code>holdfast agent connect</Code> is enough.
            </p>
          </>
        )}
        <Progress token={token} paired={paired} />
      </div>
      <DialogActions>
        <Button onClick={onClose}>Done</Button>
      </DialogActions>
    </Dialog>
  );
}

function Progress({ token, paired }: { token: Token; paired: ExecutionAgent | undefined }) {
  const now = useNow("seconds");
  return (
    <div role="status" className="rounded-md border border-line px-4 py-3">
      {describe()}
    </div>
  );

  function describe(): ReactNode {
    if (paired?.status === "online") return <StatusMark state="ok">{paired.name} is paired and online</StatusMark>;
    if (paired) {
      return (
        <>
          <StatusMark state="moving">{paired.name} is paired</StatusMark>
          <p className="mt-1 text-ink-muted">
            Waiting for it to connect. If that takes more than a minute, read what the command prints.
          </p>
        </>
      );
    }
    if (Date.parse(token.expiresAt) <= now) {
      return (
        <>
          <StatusMark state="ended">The command has expired</StatusMark>
          <p className="mt-1 text-ink-muted">No agent was paired with it. Close this dialog and create another.</p>
        </>
      );
    }
    return (
      <>
        <StatusMark state="moving">Waiting for an agent</StatusMark>
        <p className="mt-1 text-ink-muted">
          The command works once and expires in <TimeLeft until={token.expiresAt} />.
        </p>
      </>
    );
  }
}
