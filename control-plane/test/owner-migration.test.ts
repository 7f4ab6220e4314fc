// Allocations that were made before they had owners: the migration takes the owner from the audit.

import { uuidv7 } from "@holdfast/kit/uuid";
import { expect, it } from "vitest";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { openOwner } from "../src/database/connect.ts";
import { knownMigrations } from "../src/database/migrate.ts";

const MIGRATION = "0011_allocation_owners.sql";

it("SEC-01 gives allocations the owner who created them, where that is known", async () => {
  const database = await createTestDatabase({ empty: true });
  const { superuser } = openRoles(database);
  const [org, project, node, ada, token, itsOwn] = Array.from({ length: 6 }, () => uuidv7()) as [
    ...[string, string, string, string, string, string],
  ];
  const made = {
    byAda: uuidv7(),
    byHerToken: uuidv7(),
    byToken: uuidv7(),
    byOperator: uuidv7(),
    unknown: uuidv7(),
  };
  const before = knownMigrations().filter(({ name }) => name < MIGRATION);
  const [owners] = knownMigrations().filter(({ name }) => name === MIGRATION);
  // No superuser: row-level security holds for it too.
  const owner = openOwner(database.ownerUrl);
  atEnd(() => owner.end({ timeout: 1 }));
  await owner.unsafe("CREATE SCHEMA holdfast; CREATE TABLE schema_migrations (version integer PRIMARY KEY)");
  for (const { sql } of before) await owner.begin((tx) => tx.unsafe(sql));
  await superuser.begin(async (tx) => {
    await tx`INSERT INTO organizations (id, slug, name) VALUES (${org}, 'kelp', 'Kelp')`;
    await tx`INSERT INTO projects (id, org_id, slug, name) VALUES (${project}, ${org}, 'work', 'Work')`;
    await tx`INSERT INTO nodes (id, org_id, name, status) VALUES (${node}, ${org}, 'reef-1', 'active')`;
    await tx`INSERT INTO users (id, email, name, password_hash) VALUES (${ada}, 'ada@kelp.example', 'Ada', 'x')`;
    for (const [id, person] of [
      [token, ada],
      [itsOwn, null],
    ]) {
      await tx`
        INSERT INTO api_tokens (id, org_id, name, secret_hash, role, created_by, creator_name)
        VALUES (${id ?? ""}, ${org}, 'ci', ${Buffer.from(id ?? "")}, 'member', ${person ?? null}, 'ada@kelp.example')`;
    }
    for (const [who, id] of Object.entries(made)) {
      await tx`
        INSERT INTO allocations (id, org_id, project_id, node_id, username, created_by)
        VALUES (${id}, ${org}, ${project}, ${node}, ${who.toLowerCase()}, 'somebody')`;
    }
    const audit = (id: string, action: string, type: string, actor: string | null, name: string) => tx`
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        result, correlation_id)
      VALUES (${uuidv7()}, ${org}, ${type}, ${actor}, ${name}, 'member', ${action}, 'allocation', ${id}, 'allowed', 'c')`;
    await audit(made.byAda, "allocation.create", "user", ada, "ada@kelp.example");
    await audit(made.byAda, "allocation.release", "token", token, "ci");
    await audit(made.byHerToken, "allocation.create", "token", token, "ci");
    await audit(made.byToken, "allocation.create", "token", itsOwn, "ci");
    await audit(made.byOperator, "allocation.create", "local_operator", null, "local operator");
    const task = uuidv7();
    const params = { allocation_id: made.byAda };
    await tx`
      INSERT INTO tasks (id, org_id, node_id, type, params, idempotent, timeout_seconds, signature, expires_at,
        created_by, correlation_id)
      VALUES (${task}, ${org}, ${node}, 'allocation.provision_user', ${tx.json(params)}, true, 1, 's', now(), 'x', 'c')`;
  });
  await owner.begin((tx) => tx.unsafe(owners?.sql ?? ""));
  const rows = await superuser`
    SELECT id, owner_user_id AS user, owner_token_id AS token, owner_name AS name, actor_type AS by FROM allocations`;
  const row = (id: string) => {
    const { id: _, ...found } = rows.find((one) => one["id"] === id) ?? {};
    return found;
  };
  const hers = { user: ada, token: null, name: "ada@kelp.example" };
  expect(row(made.byAda), "released by the token since").toEqual({ ...hers, by: "token" });
  expect(row(made.byHerToken)).toEqual({ ...hers, by: "token" });
  expect(row(made.byToken)).toEqual({ user: null, token: itsOwn, name: "ci", by: "token" });
  const nobody = { user: null, token: null, name: null };
  expect(row(made.byOperator)).toEqual({ ...nobody, by: "local_operator" });
  expect(row(made.unknown)).toEqual({ ...nobody, by: "system" });
  expect(await superuser`SELECT allocation_id FROM tasks`).toEqual([{ allocation_id: made.byAda }]);
});
