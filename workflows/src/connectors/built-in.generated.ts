// Generated from all.ts by `npm run generate`; do not edit.

import type { CheckedConnector } from "./checked-connector.ts";
import echo from "./echo/contract.generated.ts";
import email from "./email/contract.generated.ts";
import github from "./github/contract.generated.ts";
import http from "./http/contract.generated.ts";
import jira from "./jira/contract.generated.ts";
import slack from "./slack/contract.generated.ts";

export const builtIn: Readonly<Record<string, { contract: CheckedConnector; actions: () => Promise<{ default: object }> }>> = {
  echo: { contract: echo, actions: () => import("./echo/actions.ts") },
  email: { contract: email, actions: () => import("./email/actions.ts") },
  github: { contract: github, actions: () => import("./github/actions.ts") },
  http: { contract: http, actions: () => import("./http/actions.ts") },
  jira: { contract: jira, actions: () => import("./jira/actions.ts") },
  slack: { contract: slack, actions: () => import("./slack/actions.ts") },
};
