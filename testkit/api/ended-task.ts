// A task of which the end is awaited, for however long that takes on a busy machine.

import { getTask, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { TestApi } from "./api.ts";

export async function endedTask(client: ReturnType<TestApi["operator"]>, taskId: string): Promise<Task> {
  for (;;) {
    const query = { wait_seconds: 20, until: "end" } as const;
    const task = await client(getTask, { params: { task_id: taskId }, query });
    if (terminalStatuses.has(task.status)) return task;
  }
}
