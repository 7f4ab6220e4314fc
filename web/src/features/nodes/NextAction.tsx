// The next action of a cause: a button where the product can do it, after it was said what it will and will not do; else
// where to act.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, type Node } from "@holdfast/contracts/endpoints/nodes";
import { replayTask } from "@holdfast/contracts/endpoints/tasks";
import type { ActionButton, ActionWay } from "@holdfast/contracts/reasons/actions";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import type { OfferedAction } from "@holdfast/contracts/words/actions";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { Code, Prose } from "../../design/layout/Prose.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { BundleDialog } from "./BundleDialog.tsx";
import { Effects } from "./Effects.tsx";
import { JoinDialog, type NewToken } from "./JoinDialog.tsx";

type Of = Pick<Node, "id" | "name">;
type Props = { node: Of; action: OfferedAction };

const needed = {
  reactivate: "nodes:write",
  new_identity: "nodes:write",
  bundle: "nodes:write",
  replay_task: "tasks:write",
} as const;

const places: Record<Extract<ActionWay, { by: "person" }>["where"], string> = {
  ...{ host: "On the host", server: "On the server", provider: "At the provider", page: "In Holdfast" },
};

export function NextAction({ node, action }: Props) {
  const { may } = useActing();
  const [opened, setOpened] = useState(false);
  const { way, title, command, taskId, until } = action;
  if (way.by === "itself") {
    return until === null ? null : (
      <p className="text-sm text-ink-muted">
        {title}: it should be over by <When at={new Date(until).toISOString()} exact />.
      </p>
    );
  }
  if (way.by === "person") {
    return (
      <div className="mt-1 text-sm">
        <p className="font-medium">{title}</p>
        <Effects {...action} />
        <p>
          {places[way.where]}: <Prose text={adviceFor(node.name, way.how)} />
        </p>
      </div>
    );
  }
  if (!may(needed[way.button]) || (way.button === "replay_task" && taskId === null)) return null;
  return (
    <div className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1">
      <Button onClick={() => setOpened(true)}>{title}</Button>
      {command && (
        <span className="text-sm text-ink-muted">
          or <Code>{command}</Code>
        </span>
      )}
      {opened && way.button === "bundle" && <BundleDialog node={node} onClose={() => setOpened(false)} />}
      {opened && way.button !== "bundle" && (
        <ActionDialog node={node} action={action} button={way.button} onClose={() => setOpened(false)} />
      )}
    </div>
  );
}

type DialogProps = Props & { button: Exclude<ActionButton, "bundle">; onClose: () => void };

function ActionDialog({ node, action, button, onClose }: DialogProps) {
  const [token, setToken] = useState<NewToken | null>(null);
  const send = useChange<NewToken | null>({
    send: async (call, idempotencyKey) => {
      if (button === "new_identity")
        return call(createEnrollmentToken, { body: { node_id: node.id }, idempotencyKey });
      if (button === "reactivate")
        await call(changeNode, { params: { node_id: node.id }, body: { change: "reactivate" } });
      else await call(replayTask, { params: { task_id: action.taskId ?? "" }, idempotencyKey });
      return null;
    },
    ...(button === "new_identity" ? {} : { said: said[button](node.name) }),
    onDone: (made) => (made ? setToken(made) : onClose()),
  });
  if (token) return <JoinDialog token={token} onClose={onClose} rekeyed={node} />;
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`${action.title}: ${node.name}`}
      action={action.title}
      mutation={send}
    >
      <Effects {...action} />
    </FormDialog>
  );
}

const said: Record<Exclude<ActionButton, "new_identity" | "bundle">, (name: string) => string> = {
  reactivate: (name) => `${name} is active. Its recovery is being checked.`,
  replay_task: (name) => `Created the task again for ${name}`,
};
