// Two organizations, and everything one of them could try to reach the other: every table of the
// database's own catalogue, and every endpoint of the contract. Both are walked, so that a new
// table or endpoint cannot be forgotten.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { pathOf } from "@holdfast/contracts/endpoint";
import { createAgentPairingToken, pairAgent } from "@holdfast/contracts/endpoints/agents";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { createBundle } from "@holdfast/contracts/endpoints/bundles";
import { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { createEvidence } from "@holdfast/contracts/endpoints/evidence";
import { addImage } from "@holdfast/contracts/endpoints/images";
import { listIncidents } from "@holdfast/contracts/endpoints/incidents";
import { createLease, setLeaseLabel } from "@holdfast/contracts/endpoints/leases";
import { inviteMember, listInvitations } from "@holdfast/contracts/endpoints/members";
import { createReceiver } from "@holdfast/contracts/endpoints/notify";
import { createProject } from "@holdfast/contracts/endpoints/projects";
import { startRun } from "@holdfast/contracts/endpoints/runs";
import { setSecret } from "@holdfast/contracts/endpoints/secrets";
import { listSessions } from "@holdfast/contracts/endpoints/sessions";
import { cancelTask, createTask } from "@holdfast/contracts/endpoints/tasks";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { createToken, listTokens } from "@holdfast/contracts/endpoints/tokens";
import { applyWorkflow, getWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it, vi } from "vitest";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { type Sql, withOrg } from "../src/database/connect.ts";
import { defaultPolicy } from "../src/drift/policy.ts";

/** Tables of the platform itself: not of one organization, and closed to the application role. */
const platformTables = [
  "background_jobs",
  "canary_round_trips",
  "control_plane_outages",
  "known_sign_ins",
  "environment_profiles",
  "task_key_sets",
  "gateways",
  "ingress_trust",
  "installation",
  "log_answers",
  "log_requests",
  "platform_observations",
  "platform_incidents",
  "policy_values",
  "processes",
  "rate_limits",
  "schema_migrations",
  "sealed_keys",
  "sessions",
  "task_signing_keys",
  // The application role sees id, email and name of the present organization's members.
  "users",
];

/** Of tenants, and closed to the application role: only the system writes and reads them. */
const systemTables = ["workflow_step_secrets"];

let api: TestApi;
let ours: TestOrg;
let theirs: TestOrg;
let foreign: Record<string, string>;
let app: Sql;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ app, system, superuser } = openRoles(api.database));
  ours = await createOrg(api, "ours");
  theirs = await createOrg(api, "theirs");
  const ids = await Promise.all([ours, theirs].map(populate));
  foreign = { ...ids[1], org_id: theirs.id };
});

/** At least one row in every tenant table; the catalogue test below fails where one is missing. */
async function populate(org: TestOrg): Promise<Record<string, string>> {
  const member = await addMember(api, org, `person@${org.slug}.example`, "owner");
  const client = api.operator(org.id);
  const project = await client(createProject, {
    body: { slug: "work", name: "Work" },
    idempotencyKey: `project-of-${org.slug}`,
  });
  await client(inviteMember, { body: { email: `next@${org.slug}.example` } });
  const [invitation] = (await client(listInvitations, {})).items;
  await tokenFor(api, org, "member");
  const [token] = (await client(listTokens, {})).items;
  const node = await enrollTestNode(api, org.id, { hostname: `host-of-${org.slug}` });
  await tellEverything(node);
  await sendHeartbeatFrom(node, { recovery: null });
  const task = await client(createTask, { params: { node_id: node.id }, body: { type: "node.noop" } });
  await endTwice(node, task.id);
  await superuser`INSERT INTO node_health VALUES (${node.id}, ${org.id}, now(), '{}')`;
  await superuser`INSERT INTO node_probes (node_id, org_id, asked_at) VALUES (${node.id}, ${org.id}, now())`;
  await superuser`INSERT INTO node_holders (node_id, org_id, lineage) VALUES (${node.id}, ${org.id}, '{}')`;
  await superuser`
    INSERT INTO audit_failures (id, org_id, actor_type, actor_id, credential_id, action, reason, count)
    VALUES (${uuidv7()}, ${org.id}, 'node', ${node.id}, '00', 'node.connect', 'identity_revoked', 1)`;
  await client(addNodeEvidence, { params: { node_id: node.id }, body: { ssh: "failed" } });
  // The other organization's turn may hold this node at the moment.
  const incident = await vi.waitUntil(
    async () => {
      await classifyWhatIsDue(system, defaultPolicy);
      return (await client(listIncidents, {})).items[0];
    },
    { timeout: 100_000 },
  );
  const allocation = await client(createAllocation, { body: { node_id: node.id, username: "somebody" } });
  await superuser`
    INSERT INTO allocation_grants (org_id, allocation_id, grantee_id, level, granted_by, expires_at)
    VALUES (${org.id}, ${allocation.id}, ${member.me.id}, 'view', 'test', now() + interval '1 hour')`;
  await superuser`
    INSERT INTO allocation_notifications (id, org_id, project_id, allocation_id, state, title, message)
    VALUES (${uuidv7()}, ${org.id}, ${project.id}, ${allocation.id}, 'temporary', 'a title', 'a message')`;
  const terminal = await askForTerminal(org, allocation.id);
  const receiver = await client(createReceiver, { body: { url: "https://1.1.1.1/hook" } });
  const delivery = uuidv7();
  await superuser`
    INSERT INTO notification_deliveries (id, org_id, receiver_id, kind, event, subject, message, next_attempt_at)
    VALUES (${delivery}, ${org.id}, ${receiver.id}, 'webhook', 'incident.opened', 'a subject', '{}', 'infinity')`;
  await superuser`INSERT INTO notification_topics VALUES (${org.id}, 'a topic', now())`;
  const [session] = (await member.client(org.id)(listSessions, {})).items;
  const { agentId, executionId } = await runStep(org);
  const leaseId = await leaseVm(org, node.id);
  const controllerId = await addController(org, leaseId);
  const bundle = await client(createBundle, { params: { node_id: node.id }, body: {} });
  const evidence = await client(createEvidence, { body: { subject_id: node.id } });
  const secret = await client(setSecret, { body: { name: "deploy-key", value: `value-of-${org.slug}` } });
  const preflight = uuidv7();
  await superuser`
    INSERT INTO preflights (id, org_id, node_id, state, run_from, runner_name, correlation_id)
    VALUES (${preflight}, ${org.id}, ${node.id}, 'running', 'control_plane', 'somebody', 'an-id')`;
  const enrollment = await client(createEnrollmentToken, { body: { node_name: `next-of-${org.slug}` } });
  const document = 'version: "1"\ntriggers: [{ type: webhook }]\nnodes:\n  a: { type: parallel }\n';
  const workflow = await client(applyWorkflow, { body: { name: "nightly", source: document } });
  await client(publishWorkflow, { params: { workflow_id: workflow.id }, body: {} });
  const { triggers } = await client(getWorkflow, { params: { workflow_id: workflow.id } });
  const run = await client(startRun, { params: { workflow_id: workflow.id }, body: {} });
  await superuser`
    INSERT INTO workflow_run_events (run_id, org_id, seq, type, data) VALUES (${run.id}, ${org.id}, 1, 'run_started', '{}')`;
  await superuser`
    INSERT INTO workflow_run_signals (run_id, org_id, node, approved, output, sender_name)
    VALUES (${run.id}, ${org.id}, 'a', true, 'null', 'somebody')`;
  await superuser`
    INSERT INTO workflow_step_secrets (id, org_id, run_id, node, attempt, public_key)
    VALUES (${uuidv7()}, ${org.id}, ${run.id}, 'a', 1, '')`;
  return {
    run_id: run.id,
    trigger_id: triggers[0]?.id ?? "",
    hook_id: triggers[0]?.id ?? "",
    workflow_id: workflow.id,
    agent_id: agentId,
    execution_id: executionId,
    host_id: node.id,
    lease_id: leaseId,
    controller_id: controllerId,
    image_id: `image-of-${org.slug}`,
    label: `label-of-${org.slug}`,
    node_id: node.id,
    incident_id: incident.id,
    trace_id: incident.id,
    task_id: task.id,
    allocation_id: allocation.id,
    terminal_id: terminal.session_id,
    enrollment_token_id: enrollment.id,
    bundle_id: bundle.id,
    evidence_id: evidence.id,
    preflight_id: preflight,
    user_id: member.me.id ?? "",
    session_id: session?.id ?? "",
    receiver_id: receiver.id,
    secret_id: secret.id,
    delivery_id: delivery,
    project_id: project.id,
    token_id: token?.id ?? "",
    invitation_id: invitation?.id ?? "",
  };
}

/** An agent with a request of which it printed something, and which it reported after the end. */
async function runStep(org: TestOrg): Promise<{ agentId: string; executionId: string }> {
  const { token } = await api.operator(org.id)(createAgentPairingToken, { params: { org_id: org.id } });
  const { agentId } = await api.operator()(pairAgent, {
    body: { pairingToken: token, name: `agent-of-${org.slug}`, agentVersion: "1", capabilities: { kinds: [] } },
  });
  const executionId = uuidv7();
  await superuser`
    INSERT INTO executions (id, org_id, request_id, run_id, workflow_id, step_id, step_type, attempt, user_id, kind, shell,
      timeout_ms, status, wait_until, error, asked_by, correlation_id, finished_at)
    VALUES (${executionId}, ${org.id}, ${`run-of-${org.slug}:step:1`}, 'run', 'workflow', 'step', 'agent.execute', 1,
      ${uuidv7()}, 'agent.execute', false, 1000, 'unplaced', now(), 'NO_AGENT_AVAILABLE', ${uuidv7()}, 'a-request', now())`;
  await superuser`
    INSERT INTO execution_output (execution_id, org_id, generation, seq, stream, text)
    VALUES (${executionId}, ${org.id}, 1, 1, 'stdout', 'printed')`;
  await superuser`
    INSERT INTO execution_late_results (execution_id, org_id, agent_id, status)
    VALUES (${executionId}, ${org.id}, ${agentId}, 'succeeded')`;
  return { agentId, executionId };
}

/** A VM host with a lease that nobody places, because it reports nothing. */
async function leaseVm(org: TestOrg, nodeId: string): Promise<string> {
  const client = api.operator(org.id);
  const image_id = `image-of-${org.slug}`;
  await client(addImage, { body: { id: image_id, sha256: "ab".repeat(32) } });
  await client(setLeaseLabel, { body: { label: `label-of-${org.slug}`, image_id } });
  await superuser`INSERT INTO vm_hosts (node_id, org_id) VALUES (${nodeId}, ${org.id})`;
  await superuser`
    INSERT INTO vm_strays (node_id, org_id, vm_id, task_id) VALUES (${nodeId}, ${org.id}, ${uuidv7()}, ${uuidv7()})`;
  await superuser`
    INSERT INTO vm_image_orders (node_id, org_id, image_id, action, sha256, task_id)
    VALUES (${nodeId}, ${org.id}, ${image_id}, 'fetch', ${"ab".repeat(32)}, ${uuidv7()})`;
  return (await client(createLease, { body: { image_id } })).id;
}

/** A Jenkins controller that nobody polls, because it is disabled and its build has ended; and user data that waits with a lease. */
async function addController(org: TestOrg, leaseId: string): Promise<string> {
  const id = uuidv7();
  await superuser`
    INSERT INTO vm_lease_user_data (lease_id, org_id, sealed, sha256) VALUES (${leaseId}, ${org.id}, '', ${"ab".repeat(32)})`;
  await superuser`
    INSERT INTO jenkins_controllers (id, org_id, name, url, user_name, sealed_token, labels, most_leases, burst, cooldown_seconds,
      connect_seconds, creator_name, enabled)
    VALUES (${id}, ${org.id}, 'ci', 'https://ci.example.com/', 'somebody', '', '[]', 1, 1, 1, 1, 'test', false)`;
  await superuser`
    INSERT INTO jenkins_builds (id, org_id, controller_id, queue_id, attempt, task, label_expression, node_labels, lease_label, status,
      lease_id, node_name, reason, removing_at, finished_at)
    VALUES (${uuidv7()}, ${org.id}, ${id}, 1, 1, 'job', 'linux', '{linux}', 'small', 'ended', ${uuidv7()}, ${`node-of-${org.slug}`}, '{}',
      now(), now())`;
  return id;
}

/** Of an owner who is a person: a token of the local operator has no sessions to ask for. */
async function personalToken(org: TestOrg): Promise<string> {
  const owner = await addMember(api, org, `asks@${org.slug}.example`, "owner");
  const { token } = await owner.client(org.id)(createToken, { body: { name: "asks", role: "owner" } });
  return token;
}

/** All that an agent tells about its node. */
async function tellEverything(node: TestNode): Promise<void> {
  await sendHeartbeatFrom(node);
  const record = {
    seq: 1,
    at: new Date().toISOString(),
    reason: "process_alive",
    detail: "",
    instance_id: "018f0000-0000-4000-8000-000000000000",
    correlation_id: null,
  };
  await node.client.ask({ method: "POST", path: node.path("diagnostics"), body: { records: [record] } });
}

/** As if the node had made the user, and a gateway were there. */
async function askForTerminal(org: TestOrg, allocationId: string) {
  await superuser`UPDATE allocations SET status = 'active' WHERE id = ${allocationId}`;
  await superuser`
    INSERT INTO gateways (id, terminal_url, node_url, sessions, execution_url)
    VALUES (${uuidv7()}, 'ws://127.0.0.1:3002/v1/terminal', 'https://127.0.0.1:18443', 0, 'ws://127.0.0.1:3002/ws')`;
  return api.operator(org.id)(createTerminalToken, { params: { allocation_id: allocationId }, body: {} });
}

/** Cancelled before it was taken, and then reported all the same: a late result. */
async function endTwice(node: TestNode, taskId: string): Promise<void> {
  await api.operator(node.orgId)(cancelTask, { params: { task_id: taskId } });
  const body = { generation: 1, timings: {}, outcome: { status: "succeeded", result: {} } };
  const answer = await node.client.ask({ method: "POST", path: node.path(`tasks/${taskId}/result`), body });
  expect(answer.body).toEqual({ verdict: "late" });
}

type Table = { name: string; column: string; forced: boolean };

async function tenantTables(): Promise<Table[]> {
  return superuser<Table[]>`
    SELECT c.relname AS name, a.attname AS column, c.relrowsecurity AND c.relforcerowsecurity AS forced
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
      AND a.attname = CASE c.relname WHEN 'organizations' THEN 'id' ELSE 'org_id' END
    WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p')
    ORDER BY 1`;
}

const readableTables = async () => (await tenantTables()).filter(({ name }) => !systemTables.includes(name));

describe("in the database", () => {
  it("SEC-01 knows every table as a tenant's or the platform's", async () => {
    const all = await superuser<{ name: string }[]>`
      SELECT relname AS name FROM pg_class
      WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')`;
    const tenant = (await tenantTables()).map((table) => table.name);
    expect(all.map((table) => table.name).sort()).toEqual([...tenant, ...platformTables].sort());
  });

  it("SEC-01 forces row-level security on every tenant table, and both organizations have rows in it", async () => {
    const tables = await tenantTables();
    expect(tables.length).toBeGreaterThan(6);
    for (const { name, column, forced } of tables) {
      expect(forced, `${name} forces row-level security`).toBe(true);
      for (const org of [ours, theirs]) {
        const [row] =
          await superuser`SELECT count(*)::int AS n FROM ${superuser(name)} WHERE ${superuser(column)} = ${org.id}`;
        expect(row?.["n"], `rows of ${org.slug} in ${name}; extend populate()`).toBeGreaterThan(0);
      }
    }
  });

  it("SEC-01 shows the application role the rows of its own organization only", async () => {
    for (const { name, column } of await readableTables()) {
      const seen = await withOrg(app, ours.id, (tx) => tx`SELECT DISTINCT ${tx(column)} AS org FROM ${tx(name)}`);
      expect(
        seen.map((row) => row["org"]),
        name,
      ).toEqual([ours.id]);
    }
  });

  it("SEC-01 shows nothing when no organization is set", async () => {
    for (const { name } of await readableTables()) {
      const [row] = await app`SELECT count(*)::int AS n FROM ${app(name)}`;
      expect(row?.["n"], name).toBe(0);
    }
  });

  it("SEC-01 lets no write of the application role touch a foreign row", async () => {
    for (const { name, column } of await tenantTables()) {
      const before = await rowsOf(name, column, theirs.id);
      for (const [kind, attempt] of Object.entries(writesAgainst(name, column))) {
        const touched = await attempt().catch((error: { code: string }) => error.code);
        // 42501: no such privilege, or refused by the row-level policy.
        expect([0, "42501"], `${kind} on ${name}`).toContain(touched);
      }
      expect(await rowsOf(name, column, theirs.id), name).toEqual(before);
    }
  });

  function writesAgainst(name: string, column: string): Record<string, () => Promise<number>> {
    const attempt = (work: (tx: Sql) => Promise<{ count: number }>) => async () =>
      withOrg(app, ours.id, async (tx) => (await work(tx as unknown as Sql)).count);
    return {
      delete: attempt((tx) => tx`DELETE FROM ${tx(name)} WHERE ${tx(column)} = ${theirs.id}`),
      update: attempt(
        (tx) => tx`UPDATE ${tx(name)} SET ${tx(column)} = ${ours.id} WHERE ${tx(column)} = ${theirs.id}`,
      ),
      "give away": attempt(
        (tx) => tx`UPDATE ${tx(name)} SET ${tx(column)} = ${theirs.id} WHERE ${tx(column)} = ${ours.id}`,
      ),
      insert: attempt((tx) => tx`INSERT INTO ${tx(name)} (${tx(column)}) VALUES (${theirs.id})`),
    };
  }

  it("SEC-01 refuses a complete foreign row, not only an incomplete one", async () => {
    for (const { name, column } of await tenantTables()) {
      if (name === "organizations") continue;
      const [row] =
        await superuser`SELECT to_jsonb(t) AS row FROM ${superuser(name)} t WHERE ${superuser(column)} = ${theirs.id}`;
      const copy = row?.["row"] as Record<string, unknown>;
      const columns = Object.keys(copy).filter((key) => copy[key] !== null);
      const refused = await withOrg(app, ours.id, (tx) =>
        tx.unsafe(
          `INSERT INTO ${name} (${columns.join(", ")})
           SELECT ${columns.join(", ")} FROM jsonb_populate_record(NULL::${name}, $1::text::jsonb)`,
          [JSON.stringify({ ...copy, ...("id" in copy ? { id: uuidv7() } : {}) })],
        ),
      ).catch((error: { code: string }) => error.code);
      expect(refused, name).toBe("42501");
    }
  });

  it("SEC-01 closes the tables of platform and system to the application role", async () => {
    for (const name of [...platformTables.filter((table) => table !== "users"), ...systemTables]) {
      const refused = await app`SELECT FROM ${app(name)}`.catch((error: { code: string }) => error.code);
      expect(refused, name).toBe("42501");
    }
  });

  it("SEC-01 shows of people only the members, and never a password hash", async () => {
    const emails = await withOrg(app, ours.id, (tx) => tx`SELECT email FROM users`);
    expect(emails.map((row) => row["email"])).toEqual(["person@ours.example"]);
    const refused = await withOrg(app, ours.id, (tx) => tx`SELECT password_hash FROM users`).catch((e) => e.code);
    expect(refused).toBe("42501");
  });

  it("SEC-01 gives neither runtime role, nor the login of either, BYPASSRLS or anything of the owner's", async () => {
    const roles = await superuser`
      SELECT rolname, rolbypassrls, rolsuper, rolcreaterole, rolcreatedb, rolinherit FROM pg_roles
      WHERE rolname ~ '^holdfast_(app|system)(_holdfast)?$'`;
    expect(roles).toHaveLength(4);
    for (const role of roles) {
      expect([role["rolbypassrls"], role["rolsuper"], role["rolcreaterole"], role["rolcreatedb"]]).toEqual([
        false,
        false,
        false,
        false,
      ]);
    }
    const becoming = await superuser`
      SELECT FROM pg_roles WHERE rolname ~ '^holdfast_(app|system)(_holdfast)?$'
        AND pg_has_role(rolname, 'holdfast_owner', 'MEMBER')`;
    expect(becoming).toHaveLength(0);
  });

  async function rowsOf(name: string, column: string, org: string) {
    return superuser`SELECT t.* FROM ${superuser(name)} t WHERE ${superuser(column)} = ${org} ORDER BY t::text`;
  }
});

describe("over HTTP", () => {
  const withParams = allEndpoints.filter((endpoint) => endpoint.params);
  const body: Record<string, unknown> = {
    resolveClone: { keep: 1 },
    updateOrganization: { name: "Taken over" },
    updateProject: { name: "Taken over" },
    updateMember: { role: "member" },
    updateNode: { name: "taken-over" },
    changeNode: { change: "retire" },
    addNodeEvidence: { ssh: "failed" },
    createTask: { type: "node.noop" },
    createTerminalToken: {},
    createConsoleToken: {},
    createBundle: {},
    startPreflight: {},
    createAllocationGrant: { user_id: uuidv7() },
    transferAllocation: { owner_id: uuidv7() },
    updateMemberQuota: { limit: 1 },
    setJenkinsToken: { api_token: "another token" },
    rotateSecret: { value: "another value" },
    updateHost: { enabled: false },
    cleanHost: {},
    publishWorkflow: {},
    startRun: {},
    testStep: { source: "version: 1", node: "a" },
    resumeRun: { node: "a" },
    sendRunEvent: { event: "a" },
    retryRun: {},
    setWorkflowTrigger: { enabled: false },
    startLeaseWork: { work: "taken over" },
    prewarmImage: {},
    runLeaseCommand: { command_id: "01a1e13c-bc3d-71c5-9b58-aada3c2346d4", command: ["true"] },
    reportTerminalFailure: { code: "terminal_ui_connecting_stuck" },
  };
  /** Of endpoints that need one. */
  const query: Record<string, string> = { readLeaseOutput: "?command_id=01a1e13c-bc3d-71c5-9b58-aada3c2346d4" };
  /** Where the same name in a path means another thing. */
  const own: Record<string, (ids: Record<string, string>) => Record<string, string>> = {
    revokeEnrollmentToken: (ids) => ({ token_id: ids["enrollment_token_id"] ?? "" }),
  };

  let asking: Promise<string> | undefined;

  it("SEC-01 knows a foreign id for every path parameter of the contract", () => {
    const names = withParams.flatMap((endpoint) => Object.keys(endpoint.params?.shape ?? {}));
    for (const name of names) expect(foreign[name], `a foreign ${name}; extend populate()`).toBeTruthy();
  });

  it.each(withParams.map((endpoint) => [endpoint.name, endpoint] as const))(
    "SEC-01 %s answers a foreign id exactly like an unknown one",
    async (_name, endpoint) => {
      asking ??= personalToken(ours);
      const token = await asking;
      const unknown = Object.fromEntries(Object.keys(foreign).map((key) => [key, uuidv7()]));
      const [a, b] = await Promise.all([call(endpoint, token, foreign), call(endpoint, token, unknown)]);
      expect(a.status).toBe(404);
      expect(a).toEqual(b);
    },
  );

  async function call(endpoint: Endpoint, token: string, params: Record<string, string>) {
    const payload = body[endpoint.name];
    const ids = { ...params, ...own[endpoint.name]?.(params) };
    const response = await fetch(api.url + pathOf(endpoint, ids) + (query[endpoint.name] ?? ""), {
      method: endpoint.method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(payload ? { "content-type": "application/json" } : {}),
      },
      ...(payload ? { body: JSON.stringify(payload) } : {}),
    });
    const { correlation_id: _, ...envelope } = (await response.json()) as Record<string, unknown>;
    return { status: response.status, envelope };
  }

  it("SEC-01 shows nothing of the other organization in any listing", async () => {
    // One that has not tried foreign ids yet: its own audit would rightly show them.
    const token = await personalToken(await createOrg(api, "third"));
    const marks = [...Object.values(foreign), "theirs"];
    const listings = allEndpoints.filter(
      (one) => one.method === "GET" && !one.params && one.access !== "operator",
    );
    expect(listings.length).toBeGreaterThan(4);
    // Listings of what belongs to an id: log lines, runs of workflows.
    const asked = { id: foreign["node_id"], workflow_ids: foreign["workflow_id"] };
    for (const endpoint of listings) {
      const name = Object.keys(asked).find((one) => one in (endpoint.query?.shape ?? {})) as keyof typeof asked;
      const query = name ? `?${name}=${asked[name]}` : "";
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(api.url + endpoint.path + query, { headers });
      const text = await response.text();
      expect(response.status, endpoint.name).toBe(200);
      for (const mark of marks) expect(text, endpoint.name).not.toContain(mark);
    }
  });

  it("SEC-01 answers X-Org-Id of a foreign organization exactly like one that does not exist", async () => {
    const token = await tokenFor(api, ours, "owner");
    const ask = async (orgId: string) => {
      const response = await fetch(`${api.url}/v1/projects`, {
        headers: { authorization: `Bearer ${token}`, "x-org-id": orgId },
      });
      const { correlation_id: _, ...envelope } = (await response.json()) as Record<string, unknown>;
      return { status: response.status, envelope };
    };
    const answer = await ask(theirs.id);
    expect(answer.status).toBe(404);
    expect(await ask(uuidv7())).toEqual(answer);
    expect(await ask("not-a-uuid")).toEqual(answer);
  });

  it("SEC-01 refuses every operator endpoint to an organization's owner", async () => {
    const owner = await tokenFor(api, ours, "owner");
    for (const endpoint of allEndpoints.filter((one) => one.access === "operator")) {
      const response = await fetch(api.url + endpoint.path, {
        method: endpoint.method,
        headers: { authorization: `Bearer ${owner}`, "content-type": "application/json" },
        ...(endpoint.method === "GET" ? {} : { body: JSON.stringify({ slug: "mine", name: "Mine" }) }),
      });
      expect([400, 403], endpoint.name).toContain(response.status);
      expect(((await response.json()) as { code: string }).code, endpoint.name).not.toBe("internal_error");
    }
  });

  it("SEC-01 refuses every endpoint that is not public to a caller without credentials", async () => {
    for (const endpoint of allEndpoints.filter((one) => one.access !== "public")) {
      const response = await fetch(api.url + pathOf(endpoint, foreign), { method: endpoint.method });
      expect(response.status, endpoint.name).toBe(401);
    }
  });
});
