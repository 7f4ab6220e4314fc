// An operator of a platform with more organizations than one answer lists.

import { beforeAll, describe, expect, it } from "vitest";
import { firstAdmin, PASSWORD, startTestApi, type TestApi } from "../../../testkit/api/api.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { aPerson } from "../support/command.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await firstAdmin(api, "root@example.com");
  const { superuser } = openRoles(api.database);
  await superuser`
    INSERT INTO organizations (id, slug, name)
    SELECT gen_random_uuid(), 'org-' || n, 'Organization ' || lpad(n::text, 3, '0') FROM generate_series(1, 450) n`;
});

describe("an operator of many organizations", () => {
  it("SEC-01 acts in any of them, by slug and by id", async () => {
    const operator = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: api.operatorToken });
    const renamed = await operator.json(["org", "rename", "The last", "--org", "org-450"]);
    expect(renamed).toMatchObject({ slug: "org-450", name: "The last" });
    const byId = await operator.json(["org", "rename", "Zuletzt", "--org", String(renamed["id"])]);
    expect(byId).toMatchObject({ slug: "org-450", name: "Zuletzt" });
  });

  it("SEC-01 signs in to any of them", async () => {
    const root = aPerson();
    const signIn = ["login", "--api", api.url, "--email", "root@example.com", "--password-stdin"];
    const signedIn = await root.json([...signIn, "--org", "org-449"], { input: PASSWORD });
    expect(signedIn).toMatchObject({ organization: "org-449", role: "operator" });
    expect(await root.json(["org", "rename", "Mine"])).toMatchObject({ slug: "org-449", name: "Mine" });
  });

  it("SEC-01 is told of a few when none is meant, and how to see all", async () => {
    const operator = aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: api.operatorToken });
    for (const args of [[], ["--org", "org-451"]]) {
      const { code, stderr } = await operator.holdfast(["org", "members", ...args]);
      expect(code).toBe(2);
      expect(stderr).toContain("org-2, org-3, org-4,");
      expect(stderr).toContain("holdfast org list");
      expect(stderr).not.toContain("org-21");
    }
  });
});
