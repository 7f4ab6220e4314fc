// What a new step of each type begins with: complete enough to be read, and obviously to be filled in.

import type { Node } from "@holdfast/workflows/document/schema";

export const newNodes: Record<Node["type"], object> = {
  "agent.execute": { type: "agent.execute", script: "echo hello\n" },
  "http.request": { type: "http.request", url: "https://example.com/" },
  "connector.action": { type: "connector.action", connector: "echo", action: "echo", input: {} },
  condition: { type: "condition", if: "$exists(input)" },
  parallel: { type: "parallel" },
  join: { type: "join" },
  wait: { type: "wait", for: "5m" },
};

const names: Record<Node["type"], string> = {
  "agent.execute": "script",
  "http.request": "request",
  "connector.action": "action",
  condition: "check",
  parallel: "split",
  join: "join",
  wait: "wait",
};

/** `script`, `script2`, … */
export function freeId(type: Node["type"], taken: readonly string[]): string {
  const name = names[type];
  for (let count = 1; ; count++) {
    const id = count === 1 ? name : `${name}${count}`;
    if (!taken.includes(id)) return id;
  }
}
