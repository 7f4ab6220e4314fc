// A node that answers the tasks of a preflight, as its agent would.

import type { TestNode } from "./nodes.ts";

/** Takes tasks as an agent does, and reports the given answer for each; those without an answer stay. */
export function serveTasks(node: TestNode, answers: Record<string, unknown>): { stop(): void } {
  let stopped = false;
  const serve = async () => {
    while (!stopped) {
      const { body } = await node.client.ask({ path: node.path("tasks/wait?wait=2&room=8") });
      const tasks = (body["tasks"] ?? []) as { task_id: string; generation: number; task_type: string }[];
      const results = tasks
        .filter(({ task_type }) => task_type in answers)
        .map(({ task_id, generation, task_type }) => ({
          ...{ task_id, generation, timings: {} },
          outcome: { status: "succeeded", result: answers[task_type] },
        }));
      if (results.length > 0)
        await node.client.ask({ method: "POST", path: node.path("results"), body: { results } });
    }
  };
  void serve().catch(() => undefined);
  return { stop: () => (stopped = true) };
}

const hop = (kind: string, code: string | null = null) => ({
  ...{ hop: kind, ok: code === null, ms: 1, code, server_code: null, detail: code },
});
const endpoint = (name: string, hops: ReturnType<typeof hop>[]) => ({
  ...{ name, host: "127.0.0.1", port: 1, ok: hops.every(({ ok }) => ok), hops },
  ...{ addresses: [], address: null, certificate: null },
});
/** Of `diag.network_probe`: the code that each way ends with; null: it is good. */
export const probeResult = (api: (string | null)[], terminal: (string | null)[]) => ({
  ...{ profile: { name: "default", version: 1 }, ok: true },
  endpoints: [
    endpoint(
      "node_api",
      api.map((code) => hop("task_wait", code)),
    ),
    endpoint(
      "node_terminal",
      terminal.map((code) => hop("mtls", code)),
    ),
  ],
});
