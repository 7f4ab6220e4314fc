import { describe, expect, it } from "vitest";
import type { Explanation } from "../endpoints/drift.ts";
import { offeredAction } from "./actions.ts";

const since = "2030-01-01T12:00:00.000Z";
const seen = (id: string, detail: Explanation["evidence"][number]["detail"]): Explanation["evidence"][number] => ({
  ...{ id, kind: "dispatched_tasks", key: null, value: "past_lease", observer: "control_plane", fresh: true },
  ...{ observed_at: since, first_observed_at: since, received_at: since, correlation_id: null, detail },
});
const explained = {
  node_name: "rock-1",
  evidence: [seen("a", { task_id: "task-1" }), seen("b", { task_id: "task-2" })],
};
const cause = { evidence: ["b"], since, budget: { detect_seconds: 60, repair: 900 } };

describe("the action that is offered for a cause", () => {
  it("DASH-08 names the node in its command", () => {
    const { command, title } = offeredAction({ ...cause, next_action: "reactivate" }, explained);
    expect({ command, title }).toEqual({ command: "holdfast node reactivate rock-1", title: "Reactivate node" });
  });

  it("DASH-08 replays the task of its own evidence, and none that is not known", () => {
    const replay = { ...cause, next_action: "replay_task" } as const;
    expect(offeredAction(replay, explained)).toMatchObject({
      taskId: "task-2",
      command: "holdfast task replay task-2",
    });
    expect(offeredAction({ ...replay, evidence: [] }, explained)).toMatchObject({ taskId: null, command: null });
  });

  it("DASH-08 says until when to wait, where there is a limit", () => {
    const until = (repair: number | "automatic") =>
      offeredAction({ ...cause, next_action: "wait", budget: { detect_seconds: 60, repair } }, explained).until;
    expect([until(900), until("automatic")]).toEqual([Date.parse(since) + 900_000, null]);
    expect(offeredAction({ ...cause, next_action: "re_enroll" }, explained).until).toBeNull();
  });
});
