// What the command line shows tenants about the node behind an allocation, and operators beside it.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import { beforeAll, describe, expect, it } from "vitest";
import { defaultPolicy } from "../../../control-plane/src/drift/policy.ts";
import { findUnnoticed } from "../../../control-plane/src/drift/verdicts/find-unnoticed.ts";
import { addMember, createOrg, startTestApi } from "../../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../../testkit/api/evidence.ts";
import { enrollTestNode } from "../../../testkit/api/nodes.ts";
import { sendProfileHeartbeat } from "../../../testkit/api/terminals.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { aPerson, type Person } from "../support/command.ts";

let ada: Person;
let admin: Person;

beforeAll(async () => {
  const api = await startTestApi();
  const kelp = await createOrg(api, "kelp");
  const node = await enrollTestNode(api, kelp.id, { hostname: "reef-1" });
  await sendProfileHeartbeat(node, node.enrolled.profile.version);
  const person = async (email: string, role: "member" | "admin") => {
    const client = (await addMember(api, kelp, email, role)).client(kelp.id);
    const { token } = await client(createToken, { body: { name: "laptop", role } });
    return { client, shell: aPerson({ HOLDFAST_API_URL: api.url, HOLDFAST_TOKEN: token }) };
  };
  const owner = await person("ada@kelp.example", "member");
  ({ shell: ada } = owner);
  ({ shell: admin } = await person("root@kelp.example", "admin"));
  await owner.client(createAllocation, { body: { node_id: node.id, username: "alice" } });
  const { superuser, system } = openRoles(api.database);
  await superuser`UPDATE allocations SET status = 'active', active_at = now()`;
  await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes'`;
  await findUnnoticed(system, defaultPolicy);
  await classifyWhatIsDue(system, defaultPolicy);
});

const said = async (person: Person, ...args: string[]) => {
  const { code, stdout, stderr } = await person.holdfast(args);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout;
};

describe("holdfast allocation, on a node that does not report", () => {
  const { title, meaning } = userStateTitles.temporary;

  it("DASH-07 shows and lists the user state in plain words", async () => {
    const shown = await said(ada, "allocation", "show", "alice@reef-1");
    expect(shown).toContain(`${title} since `);
    expect(shown).toContain(meaning);
    expect(await said(ada, "allocation", "list")).toContain("ready, temporarily limited");
    expect(await said(ada, "node", "show", "reef-1")).not.toMatch(/heartbeat_stale|agent_down|No heartbeat/);
  });

  it("DRIFT-10 lists notifications, with the incident for operators", async () => {
    const own = await said(ada, "allocation", "notifications", "alice@reef-1");
    expect(own).toMatch(new RegExp(`^\\d{4}-\\S+ \\S+  ${title}\\n  ${meaning.slice(0, 20)}`));
    expect(own).not.toContain("incident");
    const ofOperator = await said(admin, "allocation", "notifications", "alice@reef-1");
    const command = /holdfast (incident show \S+)/.exec(ofOperator)?.[1] ?? "";
    expect(await said(admin, ...command.split(" "))).toContain("reef-1");
    const { stderr } = await ada.holdfast(["node", "explain", "reef-1"]);
    expect(stderr).toContain("forbidden");
  });
});
