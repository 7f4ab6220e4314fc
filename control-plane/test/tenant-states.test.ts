// A node's verdict reaches its allocations: each has its own user state and its own notifications.

import {
  type AllocationNotification,
  createAllocation,
  getAllocation,
  listAllocationNotifications,
} from "@holdfast/contracts/endpoints/allocations";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { newAllocation } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql, Tx } from "../src/database/connect.ts";
import { type NewObservation, recordObservations } from "../src/drift/evidence/write.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { removeOldNotifications } from "../src/drift/tenants/remove-old.ts";
import { noticeTerminals } from "../src/drift/tenants/review.ts";
import { classifyDue } from "../src/drift/verdicts/classify-due.ts";
import { findUnnoticed, noticeStandings } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let ada: Browser;
let bob: Browser;
let admin: Browser;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "kelp");
  ada = await addMember(api, org, "ada@kelp.example", "member");
  bob = await addMember(api, org, "bob@kelp.example", "member");
  admin = await addMember(api, org, "admin@kelp.example", "admin");
});

const idOf = ({ me }: Browser) => me.id ?? "";

/** A node that reports, with an allocation of each. */
async function sharedNode() {
  // Those of earlier tests were lost long ago: many at once would suspect the control plane.
  await superuser`UPDATE node_presence SET heartbeat_at = heartbeat_at - interval '1 day'`;
  const node = await enrollTestNode(api, org.id);
  await firstHeartbeat(superuser, node);
  const of = async (person: Browser) =>
    (await newAllocation(superuser, org, node.id, { userId: idOf(person) })).allocationId;
  return { node, ofAda: await of(ada), ofBob: await of(bob) };
}

const heardAgo = ({ id }: TestNode, seconds: number) => superuser`
  UPDATE node_presence SET heartbeat_at = now() - ${seconds}::int * interval '1 second' WHERE node_id = ${id}`;

/** As the worker does. */
async function classify() {
  await findUnnoticed(system, policy);
  await noticeStandings(system);
  await noticeTerminals(system);
  return classifyWhatIsDue(system, policy);
}
const reviewAll = () => superuser`UPDATE node_verdicts SET review_at = now()`;

const read = (person: Browser, id: string) =>
  person.client(org.id)(getAllocation, { params: { allocation_id: id } });
const stateOf = async (person: Browser, id: string) => (await read(person, id)).user_state?.state;
const notificationsOf = async (person: Browser, id: string, query = {}): Promise<AllocationNotification[]> =>
  (await person.client(org.id)(listAllocationNotifications, { params: { allocation_id: id }, query })).items;
const notifiedOf = async (person: Browser, id: string) =>
  (await notificationsOf(person, id)).map(({ state }) => state).toReversed();

/** A terminal of the allocation that is in use, through a gateway that reported just now. */
async function openTerminal({ id: nodeId }: TestNode, allocationId: string): Promise<{ gatewayId: string }> {
  const gatewayId = uuidv7();
  await superuser`INSERT INTO gateways VALUES (${gatewayId}, 'ws://127.0.0.1:3002/t', 'https://127.0.0.1:1', 0)`;
  await superuser`
    INSERT INTO terminal_sessions (id, org_id, allocation_id, node_id, state, user_key, actor_type, actor_name, role,
      correlation_id, chain, gateway_id, attached, attachment_at, opening_until, ends_by, detached_seconds, heard_at)
    VALUES (${uuidv7()}, ${org.id}, ${allocationId}, ${nodeId}, 'open', 'somebody', 'local_operator', 'somebody', 'operator',
      'opened', ${superuser.json({ pty_ready: new Date(Date.now() - 3_600_000).toISOString() })}, ${gatewayId}, true, now(),
      now(), now() + interval '1 day', 600, clock_timestamp())`;
  return { gatewayId };
}

describe("a verdict on a node", () => {
  it("DRIFT-10 reaches each of its allocations, with a notification for each change, and only then", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await classify();
    expect(await stateOf(ada, ofAda)).toBe("normal");
    expect(await notificationsOf(ada, ofAda)).toEqual([]);
    const before = (await read(ada, ofAda)).revision;

    await heardAgo(node, 130);
    expect((await classify()).allocations.toSorted()).toEqual([ofAda, ofBob].toSorted());
    const { title, meaning: message } = userStateTitles.temporary;
    const { user_state, revision } = await read(ada, ofAda);
    expect(user_state).toEqual({ state: "temporary", title, message, since: expect.any(String) });
    expect(revision).toBe(before + 1);
    for (let repeated = 0; repeated < 3; repeated += 1) {
      await reviewAll();
      expect((await classify()).allocations).toEqual([]);
    }
    await heardAgo(node, 600);
    await reviewAll();
    await classify();
    expect(await notifiedOf(ada, ofAda), "another next action is the same to a tenant").toEqual(["temporary"]);

    await sendHeartbeatFrom(node);
    await classify();
    expect(await notifiedOf(ada, ofAda)).toEqual(["temporary", "normal"]);
    expect(await notifiedOf(bob, ofBob)).toEqual(["temporary", "normal"]);
    expect((await read(ada, ofAda)).user_state).toMatchObject({ state: "normal" });
  });

  it("DRIFT-10 names its incident to operators only, and nothing to others", async () => {
    const { node, ofAda } = await sharedNode();
    await heardAgo(node, 130);
    await classify();
    await sendHeartbeatFrom(node);
    await classify();
    const [row] = await superuser<{ id: string }[]>`SELECT id FROM incidents WHERE node_id = ${node.id}`;
    expect((await notificationsOf(admin, ofAda)).map(({ incident_id }) => incident_id)).toEqual([
      row?.id,
      row?.id,
    ]);
    expect((await notificationsOf(ada, ofAda)).map(({ incident_id }) => incident_id)).toEqual([null, null]);
    await expect(notificationsOf(bob, ofAda)).rejects.toMatchObject({ envelope: { code: "not_found" } });
    const [newest] = await notificationsOf(ada, ofAda, { limit: 1 });
    expect(newest).toMatchObject({ allocation_id: ofAda, state: "normal" });
  });

  it("DRIFT-05 leaves an allocation normal whose terminal works, as long as it does", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    const { gatewayId } = await openTerminal(node, ofBob);
    await heardAgo(node, 600);
    await classify();
    expect(await notifiedOf(ada, ofAda)).toEqual(["temporary"]);
    expect(await notifiedOf(bob, ofBob)).toEqual([]);
    const [verdict] = await superuser<{ soon: boolean }[]>`
      SELECT review_at <= now() + interval '61 seconds' AS soon FROM node_verdicts WHERE node_id = ${node.id}`;
    expect(verdict?.soon, "it is looked at again when the evidence is old").toBe(true);

    await superuser`UPDATE gateways SET last_seen_at = now() - interval '5 minutes' WHERE id = ${gatewayId}`;
    await reviewAll();
    await classify();
    expect(await notifiedOf(bob, ofBob)).toEqual(["temporary"]);
  });

  it("DRIFT-05 is answered by a terminal that opens meanwhile", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await heardAgo(node, 130);
    await classify();
    await openTerminal(node, ofAda);
    await classify();
    expect(await notifiedOf(ada, ofAda)).toEqual(["temporary", "normal"]);
    expect(await notifiedOf(bob, ofBob)).toEqual(["temporary"]);
  });

  it("DRIFT-05 is answered by an app that runs and is reached", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await heardAgo(node, 130);
    const common = { nodeId: node.id, key: ofAda, observer: "app_runtime", observedAt: new Date() } as const;
    const checks: NewObservation[] = [
      { ...common, kind: "app_status", value: "running" },
      { ...common, kind: "app_endpoint", value: "succeeded" },
    ];
    await recordObservations(system, checks);
    await classify();
    expect(await notifiedOf(ada, ofAda)).toEqual([]);
    expect(await notifiedOf(bob, ofBob)).toEqual(["temporary"]);
  });

  it("DRIFT-03 that is P0 stands, also for an allocation whose terminal works", async () => {
    const { node, ofAda } = await sharedNode();
    await openTerminal(node, ofAda);
    const params = { node_id: node.id };
    await api.operator(org.id)(changeNode, { params, body: { change: "fence", reason: "looks odd" } });
    await classify();
    expect(await stateOf(ada, ofAda)).toBe("operator_action_required");
    await api.operator(org.id)(changeNode, { params, body: { change: "reactivate" } });
    await classify();
    expect(await notifiedOf(ada, ofAda)).toEqual(["operator_action_required", "recovering"]);
  });

  it("DRIFT-10 reaches an allocation that is created later, and none that was released", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await superuser`UPDATE allocations SET status = 'released', released_at = now() WHERE id = ${ofBob}`;
    await heardAgo(node, 130);
    await classify();
    const body = { node_id: node.id, username: `u${uuidv7().slice(-8)}` };
    const made = await ada.client(org.id)(createAllocation, { body });
    expect(made.user_state).toMatchObject({ state: "normal", since: made.created_at });
    await classify();
    expect(await notifiedOf(ada, made.id)).toEqual(["temporary"]);
    expect(await notifiedOf(ada, ofAda), "nothing new for the others").toEqual(["temporary"]);
    expect(await read(bob, ofBob)).toMatchObject({ status: "released", user_state: null });
    expect(await notifiedOf(bob, ofBob)).toEqual([]);
  });

  it("DRIFT-10 is notified once, however many classify at once", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await heardAgo(node, 130);
    await findUnnoticed(system, policy);
    await Promise.all(Array.from({ length: 4 }, () => classifyDue(system, policy)));
    await reviewAll();
    await Promise.all(Array.from({ length: 4 }, () => classifyDue(system, policy)));
    expect([await notifiedOf(ada, ofAda), await notifiedOf(bob, ofBob)]).toEqual([["temporary"], ["temporary"]]);
  });
});

/** Ends the process, as far as a transaction can tell, before its statement number `count`. */
function crashingBefore(count: number): Sql {
  let calls = 0;
  const crashing = (tx: Tx) =>
    new Proxy(tx, {
      apply(target, self, given: unknown[]) {
        calls += 1;
        if (calls > count) throw new Error("crashed");
        return Reflect.apply(target as never, self, given);
      },
    });
  return { begin: (work: (tx: Tx) => Promise<unknown>) => system.begin((tx) => work(crashing(tx))) } as Sql;
}

describe("notifications", () => {
  it("DRIFT-10 are written with the verdict or not at all, wherever the process ends", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await classify();
    await heardAgo(node, 130);
    await findUnnoticed(system, policy);
    const stored = () => superuser`
      SELECT a.user_state, (SELECT count(*)::int FROM allocation_notifications n WHERE n.allocation_id = a.id) AS notified,
             v.user_state AS of_node, (SELECT count(*)::int FROM incidents i WHERE i.node_id = a.node_id) AS incidents
      FROM allocations a JOIN node_verdicts v ON v.node_id = a.node_id WHERE a.id IN (${ofAda}, ${ofBob})`;
    const before = { user_state: "normal", notified: 0, of_node: "normal", incidents: 0 };
    let crashes = 0;
    for (;;) {
      const outcome = await classifyDue(crashingBefore(crashes), policy).catch((error: Error) => error.message);
      if (outcome !== "crashed") break;
      crashes += 1;
      expect(await stored()).toEqual([before, before]);
    }
    expect(crashes, "statements of a classification").toBeGreaterThan(5);
    const after = { user_state: "temporary", notified: 1, of_node: "temporary", incidents: 1 };
    expect(await stored()).toEqual([after, after]);
    await reviewAll();
    await classify();
    expect(await stored()).toEqual([after, after]);
  });

  it("DRIFT-10 are bounded for an allocation whose node comes and goes", async () => {
    const { node, ofAda } = await sharedNode();
    const fillers = Array.from({ length: 120 }, () => uuidv7());
    await superuser`
      INSERT INTO allocation_notifications (id, org_id, project_id, allocation_id, state, title, message)
      SELECT f.id, a.org_id, a.project_id, a.id, 'normal', 'before', 'before'
      FROM allocations a, unnest(${fillers}::uuid[]) AS f (id) WHERE a.id = ${ofAda}`;
    await heardAgo(node, 130);
    await classify();
    const kept = await notificationsOf(ada, ofAda, { limit: 200 });
    expect(kept).toHaveLength(100);
    expect(kept[0]).toMatchObject({ state: "temporary" });
  });

  it("DRIFT-10 are removed when they are old", async () => {
    const { node, ofAda, ofBob } = await sharedNode();
    await heardAgo(node, 130);
    await classify();
    await superuser`UPDATE allocation_notifications SET at = now() - interval '91 days' WHERE allocation_id = ${ofAda}`;
    expect(await removeOldNotifications(system, { days: 90 })).toBe(1);
    expect(await notifiedOf(ada, ofAda)).toEqual([]);
    expect(await notifiedOf(bob, ofBob)).toEqual(["temporary"]);
    expect(await stateOf(ada, ofAda), "the state stays").toBe("temporary");
  });
});
