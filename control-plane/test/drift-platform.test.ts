// The platform's own state is evidence for its nodes: our outage explains their silence, and so does a lost CA.

import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { observeControlPlane } from "../src/drift/observers/control-plane.ts";
import { observeSigningCa } from "../src/drift/observers/signing-ca.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";
import { type Authority, openAuthority } from "../src/identity/authority.ts";
import type { CaTrust } from "../src/identity/ingress-trust/decide.ts";
import { openKeyring } from "../src/mechanisms/sealing/keyring.ts";

/** As in `startTestApi`. */
const kek = { current: { id: "local-1", key: Buffer.alloc(32, 7) } };
let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "platform");
});

async function verdictOf({ id }: TestNode) {
  await findUnnoticed(system, policy);
  const due = await observeControlPlane(system);
  await classifyWhatIsDue(system, policy);
  const [row] = await superuser<{ causes: { reason: string; symptoms: string[] }[] }[]>`
    SELECT causes FROM node_verdicts WHERE node_id = ${id}`;
  return { due: due.includes(id), causes: row?.causes.map(({ reason, symptoms }) => [reason, ...symptoms]) };
}
/** Moves everything that was written into the past. */
const pass = async (seconds: number) => {
  const ago = `${seconds} seconds`;
  await superuser`UPDATE processes SET started_at = started_at - ${ago}::interval, last_seen_at = last_seen_at - ${ago}::interval`;
  await superuser`
    UPDATE platform_observations SET observed_at = observed_at - ${ago}::interval, seen_at = seen_at - ${ago}::interval`;
  await superuser`UPDATE node_presence SET heartbeat_at = heartbeat_at - ${ago}::interval`;
  await superuser`UPDATE node_verdicts SET review_at = review_at - ${ago}::interval`;
};

describe("an outage of our own", () => {
  it("DRIFT-07 DRIFT-13 explains the silence of nodes while it lasts and until they had time to return", async () => {
    const node = await enrollTestNode(api, org.id);
    const silent = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    await sendHeartbeatFrom(silent);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '1 day' WHERE node_id = ${silent.id}`;
    expect(await verdictOf(node)).toMatchObject({ causes: [] });
    // The api writes nothing any more, as if it had been killed.
    await superuser`CREATE FUNCTION writes_nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`;
    await superuser`CREATE TRIGGER killed BEFORE INSERT ON processes FOR EACH ROW EXECUTE FUNCTION writes_nothing()`;
    await superuser`UPDATE processes SET id = gen_random_uuid() WHERE kind = 'api'`;
    await pass(30);
    expect(await verdictOf(node)).toEqual({ due: true, causes: [["control_plane_unreachable"]] });
    await pass(130);
    expect((await verdictOf(node)).causes).toEqual([["control_plane_unreachable", "agent_down"]]);
    expect((await verdictOf(silent)).causes).toEqual([["agent_down"]]);
    await superuser`DROP TRIGGER killed ON processes`;
    await superuser`
      INSERT INTO processes (id, kind, version, hostname) VALUES (gen_random_uuid(), 'api', 'test', 'test')`;
    expect((await verdictOf(node)).causes).toEqual([["control_plane_unreachable", "agent_down"]]);
    const { evidence } = await api.operator(org.id)(explainNode, { params: { node_id: node.id } });
    expect(evidence).toContainEqual(
      expect.objectContaining({ kind: "control_plane", value: "not_ready", observer: "control_plane" }),
    );
    await sendHeartbeatFrom(node);
    await expect.poll(() => verdictOf(node)).toMatchObject({ causes: [] });
    await pass(125);
    await superuser`UPDATE processes SET last_seen_at = now()`;
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '5 minutes' WHERE node_id = ${node.id}`;
    expect((await verdictOf(node)).causes).toEqual([["agent_down"]]);
  });
});

describe("the CA that signs node certificates", () => {
  const parts = async ({ id }: TestNode) =>
    (await api.operator(org.id)(explainNode, { params: { node_id: id } })).parts.filter(
      ({ part }) => part === "signing_ca",
    );

  it("DRIFT-01 DRIFT-07 is observed by the api, and its loss is the cause for every node until it is back", async () => {
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    await superuser`DELETE FROM platform_observations`;
    const authority = await openAuthority(system, await openKeyring(system, kek), new Date());
    // The api observes it, too, and may come in between.
    const after = (by: Authority | undefined, trust: CaTrust, causes: string[][], state: string) =>
      expect
        .poll(async () => {
          await observeSigningCa(system, by, trust);
          return { causes: (await verdictOf(node)).causes, parts: await parts(node) };
        })
        .toMatchObject({ causes, parts: [{ state, observer: "control_plane" }] });
    const agrees: CaTrust = { state: "agrees" };
    const untrusted = [["cert_untrusted_by_ingress"]];
    await after(authority, agrees, [], "in_order");
    await after(undefined, agrees, untrusted, "drifted");
    await after(authority, agrees, [["recovery_unverified"]], "in_order");
    const at = [{ url: "https://nodes.test", address: "10.0.0.5", why: "it answered HTTP 400" }];
    await after(authority, { state: "mismatch", at }, untrusted, "drifted");
    // A node that reports since then does not come through that ingress, or not any more.
    await sendHeartbeatFrom(node);
    await after(authority, { state: "mismatch", at }, [["recovery_unverified"]], "in_order");
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '5 minutes' WHERE node_id = ${node.id}`;
    await after(authority, { state: "mismatch", at }, [["cert_untrusted_by_ingress", "agent_down"]], "drifted");
    await after(authority, { state: "unknown", at }, [["agent_down"]], "in_order");
  });
});
