// Asks for confirmation before an agent is revoked.

import { type ExecutionAgent, revokeAgent } from "@holdfast/contracts/endpoints/agents";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

export function RevokeAgentDialog({ agent, onClose }: { agent: ExecutionAgent; onClose: () => void }) {
  const { org } = useActing();
  const revoke = useChange({
    send: (call) => call(revokeAgent, { params: { org_id: org.id, agent_id: agent.id } }),
    said: `Revoked ${agent.name}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Revoke ${agent.name}?`}
      action="Revoke agent"
      onConfirm={() => revoke.mutate("")}
      busy={revoke.isPending}
      error={revoke.error}
    >
      <p>
        Its token is no longer accepted and its connection is closed at once. This cannot be undone; to use the
        machine again, pair it again.
        {agent.inFlight > 0 &&
          ` ${agent.inFlight} ${agent.inFlight === 1 ? "step that it runs ends" : "steps that it runs end"} without a result.`}
      </p>
    </ConfirmDialog>
  );
}
