// The connectors. `npm run generate` makes from this list what the worker and agents load (built-in.generated.ts), and the reference.

export { default as echo } from "./echo/contract.ts";
export { default as email } from "./email/contract.ts";
export { default as github } from "./github/contract.ts";
export { default as http } from "./http/contract.ts";
export { default as jira } from "./jira/contract.ts";
export { default as slack } from "./slack/contract.ts";
