// `holdfast up` over a PostgreSQL that somebody else runs.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answers, type Installation, openInstallation } from "../../../testkit/processes/holdfast.ts";

let installation: Installation;
let database: EmbeddedPostgres;
beforeAll(async () => {
  installation = openInstallation();
  database = await startEmbeddedPostgres({ directory: join(installation.dataDir, "../theirs") });
});
afterAll(async () => {
  await database.stop();
  await installation.cleanUp();
});

describe("with DATABASE_URL", () => {
  // The owner first: roles are the whole server's, and a superuser's could not be granted by the owner.
  it.for(["ownerUrl", "superuserUrl"] as const)(
    "OPS-02 uses that PostgreSQL and runs none (%s)",
    async (login) => {
      const up = installation.up({ DATABASE_URL: database[login] });
      const ready = await up.ready;
      expect(ready.database).toEqual({ embedded: false, version: database.version });
      expect(await answers(`${ready.api_url}/readyz`)).toBe(true);
      expect(existsSync(join(installation.dataDir, "postgres"))).toBe(false);
      up.process.kill("SIGTERM");
      expect(await up.ended).toMatchObject({ code: 0 });
      expect(database.pid, "theirs goes on").toBeGreaterThan(0);
      expect(() => process.kill(database.pid, 0)).not.toThrow();
    },
  );
});
