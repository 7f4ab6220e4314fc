// The state of an agent as shape and title.

import type { AgentState, ExecutionAgent } from "@holdfast/contracts/endpoints/agents";
import { agentStateTitles } from "@holdfast/contracts/words/state-titles";
import { type Mark, marksOf } from "../../design/values/marks.ts";

const marks = marksOf<AgentState>(agentStateTitles, { online: "ok", offline: "failed", revoked: "ended" });

export const agentMark = ({ status }: Pick<ExecutionAgent, "status">): Mark => marks[status];
