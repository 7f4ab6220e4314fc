// Having a node open a terminal: the task, its deadline, and why it failed.

import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { startTestApi } from "../../testkit/api/api.ts";
import { enrollGateway, SERVICE_TOKEN } from "../../testkit/api/services.ts";
import { endTask, failedWith, opened, sendProfileHeartbeat, takeTask } from "../../testkit/api/terminals.ts";
import {
  api,
  awaitTask,
  claim,
  closedEvent,
  gateway,
  hurry,
  mint,
  open,
  openSession,
  place,
  prepareTerminals,
  renewPlace,
  reportEvents,
  send,
  show,
  superuser,
} from "./support/terminals.ts";

prepareTerminals();

describe("having the node open it", () => {
  it("TERM-03 offers the node a task with all it needs, and returns how that ended", async () => {
    const { token, session_id, correlation_id } = await mint();
    await claim(token);
    const response = open(session_id);
    const task = await takeTask(place.node);
    expect(task).toMatchObject({ task_type: "terminal.open", correlation_id });
    expect(task.params).toMatchObject({
      ...{ session_id, allocation_id: place.allocationId, username: place.username, cols: 80, rows: 24 },
      ...{ correlation_id, detached_seconds: 600 },
    });
    expect((task.params as { within_seconds: number }).within_seconds).toBeLessThan(20);
    await endTask(place.node, task, opened);
    expect((await response).body).toEqual({ failure: null });
    const session = await show(session_id);
    expect(session).toMatchObject({ state: "opening", task_id: task.task_id });
    expect(Object.keys(session.chain).sort()).toEqual(["terminal_open_sent", "token_ready"]);
  });

  it.for([
    ["terminal_pty_failed", "failed", "terminal_pty_failed"],
    ["terminal_node_stream_mtls_failed", "failed", "terminal_node_stream_mtls_failed"],
    ["terminal_node_stream_timeout", "failed", "terminal_node_stream_timeout"],
    ["terminal_env_profile_drift", "failed", "terminal_env_profile_drift"],
    ["task_timed_out", "failed", "terminal_node_stream_timeout"],
    ["executor_failed", "failed", "terminal_pty_failed"],
    ["clock_skew", "refused", "terminal_open_not_taken"],
    ["capability_missing", "refused", "terminal_open_not_taken"],
    ["made_up", "failed", "terminal_pty_failed"],
  ] as const)("TERM-09 passes on %s, reported as %s, as %s", async ([reported, status, code]) => {
    const { token, session_id } = await mint();
    await claim(token);
    const response = open(session_id);
    await sendProfileHeartbeat(place.node, await newestProfile());
    const task = await takeTask(place.node);
    await endTask(place.node, task, failedWith(reported, "The shell /bin/fish is missing.", status));
    expect((await response).body).toEqual({ failure: { code, message: "The shell /bin/fish is missing." } });
  });

  it("TERM-09 reports at once that a node without a recent heartbeat is offline", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${place.node.id}`;
    const { body } = await open(session_id);
    expect(body).toMatchObject({ sent: false, failure: { code: "terminal_node_offline" } });
    expect((body["failure"] as { message: string }).message).toMatch(/ 1[2-9]\d seconds ago/);
    expect((await show(session_id)).task_id).toBeNull();
  });

  it("TERM-09 ID-14 takes a heartbeat from the future for no sign that the node is online", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() + interval '14 hours' WHERE node_id = ${place.node.id}`;
    const { body } = await open(session_id);
    await superuser`UPDATE node_presence SET heartbeat_at = now() WHERE node_id = ${place.node.id}`;
    expect(body).toMatchObject({
      failure: { code: "terminal_node_offline", message: expect.stringContaining("in the future") },
    });
  });

  it("TERM-09 says within the deadline that the node did not take the task, and takes it back", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    await hurry(session_id, 5);
    const { body } = await open(session_id);
    expect(body).toMatchObject({ failure: { code: "terminal_open_not_taken" } });
    const { task_id } = await show(session_id);
    const [task] = await superuser`SELECT status FROM tasks WHERE id = ${task_id}`;
    expect(task?.["status"]).toBe("cancelled");
  });

  it("TERM-12 distinguishes a missing stream from one that was sent to an old address", async () => {
    const late = async (version: number) => {
      await sendProfileHeartbeat(place.node, version);
      const { token, session_id } = await mint();
      await claim(token);
      const first = open(session_id);
      const task = await takeTask(place.node);
      await expect.poll(async () => (await show(session_id)).task_id).toBe(task.task_id);
      // As a gateway repeats its request with little or none of its time left.
      await hurry(session_id, 1);
      const { body } = await open(session_id);
      await endTask(place.node, task, failedWith("task_cancelled", "", "cancelled"));
      await first;
      return (body["failure"] as { code: string }).code;
    };
    const present = await newestProfile();
    expect(await late(present)).toBe("terminal_node_stream_timeout");
    await gateway.announce({ node_url: "https://127.0.0.1:38443" });
    await renewPlace();
    expect(await late(present)).toBe("terminal_env_profile_drift");
    await gateway.announce();
  });

  it("TERM-09 says of a node that took the task that its stream did not come, also when the time is over", async () => {
    await sendProfileHeartbeat(place.node, await newestProfile());
    const { token, session_id } = await mint();
    await claim(token);
    const first = open(session_id);
    const task = await takeTask(place.node);
    await expect.poll(async () => (await show(session_id)).task_id).toBe(task.task_id);
    await hurry(session_id, -1);
    expect((await open(session_id)).body).toMatchObject({ failure: { code: "terminal_node_stream_timeout" } });
    const holding = `${task.task_id}:${task.generation}`;
    const path = place.node.path(`tasks/wait?wait=20&room=0&holding=${holding}`);
    expect((await place.node.client.ask({ path })).body["cancel"], "and is requested to stop").toEqual([
      task.task_id,
    ]);
    await endTask(place.node, task, failedWith("task_cancelled", "", "cancelled"));
    await first;
  });

  it("TERM-12 does not blame an old profile that names the same gateway", async () => {
    const before = await newestProfile();
    await superuser`
      INSERT INTO environment_profiles (name, version, content)
      SELECT name, version + 1, content FROM environment_profiles ORDER BY version DESC LIMIT 1`;
    const { token, session_id } = await mint();
    await claim(token);
    const response = open(session_id);
    await sendProfileHeartbeat(place.node, before);
    const task = await takeTask(place.node);
    await endTask(place.node, task, failedWith("terminal_node_stream_timeout", "No route."));
    expect((await response).body["failure"]).toMatchObject({ code: "terminal_node_stream_timeout" });
  });

  it("TERM-05 takes the task back when the gateway has gone", async () => {
    const { token, session_id } = await mint();
    const leaving = await enrollGateway(api);
    await claim(token, leaving);
    const { body } = await send(session_id, leaving);
    const response = awaitTask(session_id, body["task_id"], leaving).catch(() => undefined);
    const task = await takeTask(place.node);
    leaving.client.close();
    await response;
    const holding = `${task.task_id}:${task.generation}`;
    const path = place.node.path(`tasks/wait?wait=20&room=0&holding=${holding}`);
    expect((await place.node.client.ask({ path })).body["cancel"]).toEqual([task.task_id]);
  });

  it("TERM-05 continues at another replica when the first one stops", async () => {
    const env = { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_TERMINAL_OPEN_SECONDS: "20" };
    const replica = await startTestApi({ database: api.database, env });
    const there = await enrollGateway(replica, { instance_id: gateway.id });
    const { token, session_id } = await mint();
    await claim(token);
    const first = open(session_id, there).catch((error: NodeJS.ErrnoException) => error.code);
    const task = await takeTask(place.node);
    await replica.stop();
    // Its second request may meet a connection that is being closed, which a gateway treats alike.
    const answer = await first;
    if (answer !== "ECONNRESET") expect(answer).toMatchObject({ status: 503, body: { code: "shutting_down" } });
    const second = open(session_id);
    await endTask(place.node, task, opened);
    expect((await second).body).toEqual({ failure: null });
  });

  it("TERM-07 opens it for the gateway that claimed it only, and says of its task to no other", async () => {
    const { token, session_id } = await mint();
    await claim(token);
    const stranger = await enrollGateway(api);
    expect(await send(session_id, stranger)).toMatchObject({ status: 409, body: { code: "terminal_moved" } });
    const { body } = await send(session_id);
    expect(await awaitTask(session_id, body["task_id"], stranger)).toMatchObject({
      ...{ status: 409, body: { code: "terminal_moved" } },
    });
  });

  it("TERM-05 knows no terminal that was not claimed, has ended, or never was", async () => {
    const { session_id } = await mint();
    const ended = await openSession();
    await reportEvents(ended, closedEvent());
    for (const id of [session_id, ended, uuidv7()]) {
      expect((await open(id)).body).toMatchObject({ failure: { code: "terminal_session_unknown" } });
    }
  });
});

async function newestProfile(): Promise<number> {
  const [row] = await superuser<{ version: number }[]>`SELECT max(version) AS version FROM environment_profiles`;
  return row?.version ?? 0;
}
