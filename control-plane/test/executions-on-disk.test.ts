// What is answered about requests is on the disk by then, although the statements that lock agents do not wait for it.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { type ExecutionLab, openExecutionLab } from "../../testkit/api/executions.ts";

let lab: ExecutionLab;

beforeAll(async () => {
  lab = await openExecutionLab();
  // The position of each change in the log of the database, written by the change itself.
  await lab.superuser.unsafe(`
    CREATE TABLE changes (at pg_lsn);
    GRANT INSERT ON changes TO PUBLIC;
    CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO changes VALUES (pg_current_wal_insert_lsn()); RETURN NULL; END';
    CREATE TRIGGER noted AFTER INSERT OR UPDATE ON executions FOR EACH ROW EXECUTE FUNCTION note_change();`);
});

async function unwritten(): Promise<number> {
  const [row] = await lab.superuser<{ count: number }[]>`
    SELECT count(*)::int AS count FROM changes WHERE at > pg_current_wal_flush_lsn()`;
  return row?.count ?? -1;
}

describe("a request", () => {
  it("EXEC-04 is on the disk when its dispatch and its result are answered", async () => {
    const agent = await lab.newAgent({ connected: true });
    for (let round = 0; round < 40; round += 1) {
      const verdict = await lab.dispatch({ organizationId: lab.orgId, runId: uuidv7() });
      expect([round, verdict.state, await unwritten()]).toEqual([round, "assigned", 0]);
      const accepted = await lab.report({
        ...{ type: "result", request_id: verdict.request_id, agent_id: agent.id, session_id: agent.sessionId },
        ...{ generation: 1, result: { status: "succeeded", output: { exitCode: 0 } } },
      });
      expect([round, accepted.verdict, await unwritten()]).toEqual([round, "accepted", 0]);
    }
  });
});
