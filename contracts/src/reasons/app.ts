// What can be wrong with an app on a node. A check that did not run is missing evidence, never a failed app.

import type { ReasonFacts } from "./vocabulary.ts";

export const appReasons = {
  app_observation_stale: {
    title: "App not checked recently",
    message: "The last check of the app did not finish. The app keeps its last known status.",
    nextStep: "Nothing to do: the next check follows by itself.",
    class: "task",
    owner: "app_runtime",
    severity: "P2",
    userState: "temporary",
    nextAction: "wait",
    dependsOn: [
      ...["agent_down", "control_plane_unreachable", "task_backlog_stale", "node_agent_api_unreachable"],
      ...["node_task_result_post_failed", "node_agent_binary_invalid"],
    ],
  },
  app_runtime_failed: {
    title: "App stopped",
    message: "A finished check found the app stopped.",
    nextStep: "Read the app's log, then restart or redeploy it.",
    class: "host",
    owner: "app_runtime",
    severity: "P1",
    userState: "operator_action_required",
    nextAction: "repair_app",
    dependsOn: [],
  },
  app_route_unhealthy: {
    title: "App unreachable at its address",
    message: "The app is running, but requests to its address fail.",
    nextStep: "Check the route to the app: sign-in, headers, upstream. The node needs no repair.",
    class: "platform",
    owner: "edge",
    severity: "P1",
    userState: "operator_action_required",
    nextAction: "repair_app_route",
    dependsOn: ["app_runtime_failed"],
  },
  app_credential_failed: {
    title: "App credential rejected repeatedly",
    message: "The same credential of the app was rejected again and again.",
    nextStep: "Renew the credential once, and check that the failures stop.",
    class: "access",
    owner: "credential_broker",
    severity: "P1",
    userState: "operator_action_required",
    nextAction: "repair_credential",
    dependsOn: [],
  },
} as const satisfies Record<string, ReasonFacts>;
