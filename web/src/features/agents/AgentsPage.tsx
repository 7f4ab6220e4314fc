// The agents of the organization, and how to pair another one.

import type { ExecutionAgent } from "@holdfast/contracts/endpoints/agents";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button, buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useActing } from "../../session.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { AgentTable } from "./AgentTable.tsx";
import { PairDialog } from "./PairDialog.tsx";
import { useAgents } from "./queries.ts";
import { RevokeAgentDialog } from "./RevokeAgentDialog.tsx";

export function AgentsPage() {
  const { org, may } = useActing();
  const { data, error, refetch } = useAgents();
  const [pairing, setPairing] = useState(false);
  const [revoking, setRevoking] = useState<ExecutionAgent | null>(null);
  const [withRevoked, setWithRevoked] = useState(false);
  const shown = data?.filter(({ status }) => withRevoked || status !== "revoked");
  const hidden = data?.length === undefined || withRevoked ? 0 : data.length - (shown?.length ?? 0);
  const pair = may("agents:write") && (
    <Button look="primary" onClick={() => setPairing(true)}>
      <Icon name="plus" />
      Pair an agent
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Agents"
        actions={
          <>
            <Link to="/executions" className={buttonClasses("secondary")}>
              Executions
            </Link>
            {pair}
          </>
        }
      >
        Agents run steps of workflows in networks that only they can reach. They belong to {org.name}. <LiveMark />
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what="agents" />}
      {shown?.length === 0 && (
        <EmptyState icon={<Icon name="agents" />} title="No agents yet" actions={pair || undefined}>
          <p>
            {may("agents:write")
              ? "Pair one: you get a command for the machine on which steps are to run. It connects outbound, so no port has to be opened."
              : "An admin or owner of the organization can pair one."}
          </p>
        </EmptyState>
      )}
      {shown && shown.length > 0 && (
        <AgentTable agents={shown} onRevoke={may("agents:write") ? setRevoking : undefined} />
      )}
      {hidden > 0 && (
        <p className="mt-3">
          <Button look="quiet" onClick={() => setWithRevoked(true)}>
            Show {hidden} revoked {hidden === 1 ? "agent" : "agents"}
          </Button>
        </p>
      )}
      {pairing && <PairDialog known={data ?? []} onClose={() => setPairing(false)} />}
      {revoking && <RevokeAgentDialog agent={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}
