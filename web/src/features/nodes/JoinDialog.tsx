// The command that enrolls a machine, shown once, and its progress until the machine is a node.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { createEnrollmentToken, EnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button, buttonClasses } from "../../design/controls/Button.tsx";
import { Dialog, DialogActions } from "../../design/dialogs/Dialog.tsx";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { CopyBlock } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useNow } from "../../design/values/use-now.ts";
import { TimeLeft } from "../../design/values/When.tsx";
import { useEnrollmentTokens } from "./enrollment-queries.ts";
import { useNode } from "./queries.ts";

export type NewToken = AnswerOf<typeof createEnrollmentToken>;

type JoinDialogProps = { token: NewToken; onClose: () => void; rekeyed?: Pick<Node, "id" | "name"> };

export function JoinDialog({ token, onClose, rekeyed }: JoinDialogProps) {
  const { items } = useEnrollmentTokens({ watchful: true });
  const now = items?.find((each) => each.id === token.id) ?? token;
  const node = useNode(now.enrolled_node_id ?? undefined).data;
  return (
    <Dialog
      open
      keepOpen={!now.used_at}
      onClose={onClose}
      title={rekeyed ? `New identity for ${rekeyed.name}` : "Enroll a machine"}
      description={rekeyed ? undefined : "The agent connects to this server; the machine needs no open port."}
    >
      <div className="space-y-5">
        {!now.used_at && (
          <>
            <StatusMark state="degraded">Shown only once. Copy it before you close this dialog.</StatusMark>
            <CopyBlock label="Join command" value={token.install_command ?? token.join_command} />
            <HowToRun token={token} machine={rekeyed ? rekeyed.name : "the new machine"} />
          </>
        )}
        <Progress token={now} node={node} />
        {token.only_this_machine && !now.used_at && <OnlyThisMachine apiUrl={token.api_url} />}
      </div>
      <DialogActions>
        {node && (
          <Link
            to="/nodes/$nodeId"
            params={{ nodeId: node.id }}
            className={buttonClasses("primary")}
            onClick={onClose}
          >
            Open {node.name}
          </Link>
        )}
        <Button onClick={onClose}>Done</Button>
      </DialogActions>
    </Dialog>
  );
}

function HowToRun({ token, machine }: { token: NewToken; machine: string }) {
  if (token.install_command === null) {
    return (
      <p className="text-sm text-ink-muted">
        Run it on {machine}, in a checkout of Holdfast. To get a command that also installs the agent, run{" "}
        <Code>npm run pack-agent</Code> on this server, then create a new token.
      </p>
    );
  }
  return (
    <p className="text-sm text-ink-muted">
      Run it as root on {machine} (Linux with systemd). It downloads the agent from this server, verifies its
      SHA-256, installs it, enrolls the machine and starts it. <Code>holdfast agent uninstall</Code> removes
      everything again.
    </p>
  );
}

function OnlyThisMachine({ apiUrl }: { apiUrl: string }) {
  return (
    <Notice state="unknown" title="Only the machine that runs Holdfast can use this token">
      <p>
        Agents connect to <Code>{apiUrl}</Code>, which other machines cannot reach. To allow them, set{" "}
        <Code>HOLDFAST_NODE_API_BIND</Code> to an address of this server (or <Code>0.0.0.0</Code>) and{" "}
        <Code>HOLDFAST_NODE_API_URL</Code> to the address by which they reach it, such as{" "}
        <Code>{`https://holdfast.example.com:${new URL(apiUrl).port || 443}`}</Code>, and restart Holdfast. Then
        create a new token.
      </p>
    </Notice>
  );
}

function Progress({ token, node }: { token: EnrollmentToken; node: Node | undefined }) {
  const now = useNow("seconds");
  return (
    <div role="status" className="rounded-md border border-line px-4 py-3">
      {describe()}
    </div>
  );

  function describe(): ReactNode {
    if (node?.connection === "online") {
      return (
        <>
          <StatusMark state="ok">{node.name} is enrolled</StatusMark>
          <p className="mt-1 text-ink-muted">
            {node.status === "quarantined"
              ? "It is online, and stays quarantined until you reactivate it."
              : "It is online and accepts tasks."}
          </p>
        </>
      );
    }
    if (token.used_at) {
      return (
        <>
          <StatusMark state="moving">
            {node ? `${node.name} has its certificate` : "The machine is enrolled"}
          </StatusMark>
          <p className="mt-1 text-ink-muted">
            Waiting for the first heartbeat. If that takes more than a minute, run{" "}
            <Code>holdfast agent diagnose</Code> on the machine.
          </p>
        </>
      );
    }
    if (token.revoked_at) return <StatusMark state="ended">The token was revoked</StatusMark>;
    if (Date.parse(token.expires_at) <= now) {
      return (
        <>
          <StatusMark state="ended">The token has expired</StatusMark>
          <p className="mt-1 text-ink-muted">It was not used. Close this dialog and create another.</p>
        </>
      );
    }
    return (
      <>
        <StatusMark state="moving">Waiting for the machine to enroll</StatusMark>
        <p className="mt-1 text-ink-muted">
          The command works once and expires in <TimeLeft until={token.expires_at} />.
        </p>
      </>
    );
  }
}
