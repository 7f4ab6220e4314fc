// What the steps are given, as this agent reads it by payloads.generated.ts.

export { AgentExecutePayload, ConnectorActionPayload } from "@holdfast/contracts/execution/payloads";
