// Which facts mean which reason. Of several rules with the same reason the first that holds is used. Rules do not exclude each
// other: what is only a symptom of another cause is left out by `dependsOn` of the catalogue, and by nothing else.

import type { Rule } from "./rule.ts";
import { accessRules } from "./rules/access.ts";
import { appRules } from "./rules/apps.ts";
import { hostRules } from "./rules/host.ts";
import { identityRules } from "./rules/identity.ts";
import { linkRules } from "./rules/link.ts";
import { taskRules } from "./rules/tasks.ts";

export const rules: readonly Rule[] = [
  ...identityRules,
  ...linkRules,
  ...hostRules,
  ...taskRules,
  ...accessRules,
  ...appRules,
];
