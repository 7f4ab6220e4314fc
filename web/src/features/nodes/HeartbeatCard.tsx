// The agent's last heartbeat, and its age.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import { nodeLinkTitles } from "@holdfast/contracts/words/state-titles";
import { classes } from "../../design/controls/classes.ts";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs } from "../../design/values/time.ts";
import { SecondsAgo, When } from "../../design/values/When.tsx";
import { AsOf, isCurrent } from "./AsOf.tsx";
import { nodeAgentStatusMarks } from "./node-marks.ts";

export function HeartbeatCard({ node }: { node: NodeDetail }) {
  return (
    <Card title="Heartbeat" note={node.heartbeat_at && <SecondsAgo at={node.heartbeat_at} />}>
      {node.heartbeat_at ? (
        <Facts className={classes("px-5 py-1", !isCurrent(node) && "text-ink-muted")}>
          {node.agent_status && (
            <Fact name="State">
              <StatusMark state={nodeAgentStatusMarks[node.agent_status].state}>
                {nodeAgentStatusMarks[node.agent_status].word}
              </StatusMark>
            </Fact>
          )}
          {node.agent_started_at && (
            <Fact name="Agent">
              {node.agent_version && <span className="font-mono text-sm">{node.agent_version}</span>}, started{" "}
              <When at={node.agent_started_at} />
            </Fact>
          )}
          {node.link && (
            <Fact name="Link">
              {nodeLinkTitles[node.link].title}
              {node.link_since && (
                <>
                  , opened <When at={node.link_since} />
                </>
              )}
            </Fact>
          )}
          {node.clock_skew_seconds !== null && (
            <Fact name="Clock">
              <Skew seconds={node.clock_skew_seconds} current={isCurrent(node)} /> <AsOf node={node} />
            </Fact>
          )}
          {node.running_tasks !== null && <Running node={node} />}
          {node.instance_id && (
            <Fact name="Instance">
              <CopyableId id={node.instance_id} label="Copy instance id" />
            </Fact>
          )}
          {node.boot_id && (
            <Fact name="Boot">
              <CopyableId id={node.boot_id} label="Copy boot id" />
            </Fact>
          )}
        </Facts>
      ) : (
        <p className="px-5 py-4 text-ink-muted">
          No heartbeat yet. A running agent sends one within seconds. To find out what prevents it, run{" "}
          <code className="font-mono text-[0.92em]">holdfast agent diagnose</code> on the machine.
        </p>
      )}
    </Card>
  );
}

function Running({ node }: { node: NodeDetail }) {
  return (
    <Fact name="Running">
      {node.running_tasks} {node.running_tasks === 1 ? "task" : "tasks"}
      {node.unsent_results ? (
        <span className="ml-3">
          <StatusMark state="degraded">
            {node.unsent_results} unsent {node.unsent_results === 1 ? "result" : "results"}
          </StatusMark>
        </span>
      ) : (
        <span className="text-ink-muted">, all results delivered</span>
      )}{" "}
      <AsOf node={node} />
    </Fact>
  );
}

/** Of a node that does not report, nobody knows how its clock is now. */
function Skew({ seconds, current }: { seconds: number; current: boolean }) {
  const off = Math.abs(seconds);
  const words = `${tookMs(off * 1_000)} ${seconds > 0 ? "ahead" : "behind"}`;
  const state = !current ? "unknown" : off > CLOCK_TOLERANCE_SECONDS ? "failed" : "ok";
  return <StatusMark state={state}>{off < 1 ? "In sync (less than 1 s off)" : words}</StatusMark>;
}
