// The modules of the control plane. Adding one is its folder and a line here.

export { agentRelease } from "./agent-release/module.ts";
export { agents } from "./agents/module.ts";
export { allocations } from "./allocations/module.ts";
export { audit } from "./audit/module.ts";
export { bundles } from "./bundles/module.ts";
export { drift } from "./drift/module.ts";
export { executions } from "./executions/module.ts";
export { fleet } from "./fleet/module.ts";
export { internalApi } from "./internal-api/module.ts";
export { links } from "./links/module.ts";
export { live } from "./live/module.ts";
export { members } from "./members/module.ts";
export { nodeApi } from "./node-api/module.ts";
export { nodes } from "./nodes/module.ts";
export { notify } from "./notify/module.ts";
export { organizations } from "./organizations/module.ts";
export { people } from "./people/module.ts";
export { platform } from "./platform/module.ts";
export { policy } from "./policy/module.ts";
export { projects } from "./projects/module.ts";
export { quotas } from "./quotas/module.ts";
export { recovery } from "./recovery/module.ts";
export { runbooks } from "./runbooks/module.ts";
export { tasks } from "./tasks/module.ts";
export { terminals } from "./terminals/module.ts";
export { tokens } from "./tokens/module.ts";
