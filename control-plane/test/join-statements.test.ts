// How many statements a join and a renewal send to PostgreSQL: after an outage, thousands of nodes do either at once.

import { certificateRequest, newPrivateKey } from "@holdfast/kit/certificate-request";
import { uuidv7 } from "@holdfast/kit/uuid";
import { Client } from "pg";
import { beforeAll, expect, it, vi } from "vitest";
import { hostFacts } from "../../testkit/api/nodes.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { type Sql, withOrg } from "../src/database/connect.ts";
import { type Authority, temporaryAuthority } from "../src/identity/authority.ts";
import { createIssuanceGate } from "../src/identity/issuance-gate.ts";
import { makeSecret } from "../src/mechanisms/secrets.ts";
import { insertEnrollmentToken } from "../src/nodes/directory/queries.ts";
import type { NodeDirectory } from "../src/nodes/directory/standings.ts";
import { enroll } from "../src/nodes/enrollment/enroll.ts";
import { renew } from "../src/nodes/identity/renew.ts";

/** With BEGIN and COMMIT. */
const MOST_STATEMENTS = {
  /** A new node, with a pairing token. */
  join: 7,
  /** The same request again. */
  joinRepeated: 7,
  /** A new key for a node that exists, with a pairing token. */
  rejoin: 10,
  /** A new node, with a bootstrap token. */
  bootstrap: 11,
  renewal: 5,
};

let app: Sql;
let system: Sql;
let authority: Authority;
const orgId = uuidv7();

beforeAll(async () => {
  ({ app, system } = openRoles(await createTestDatabase()));
  authority = temporaryAuthority(new Date());
  await system`INSERT INTO organizations (id, slug, name) VALUES (${orgId}, 'ours', 'Ours')`;
});

async function tokenFor(kind: "pairing" | "bootstrap", nodeId: string | null = null): Promise<string> {
  const { secret, hash } = makeSecret(kind === "pairing" ? "enrollment" : kind);
  const nodeName = kind === "bootstrap" ? "reef-1" : null;
  const made = { createdBy: null, creatorName: "test", parentId: null, expiresInMinutes: 15 };
  await withOrg(app, orgId, (tx) => insertEnrollmentToken(tx, { orgId, kind, hash, nodeId, nodeName, ...made }));
  return secret;
}

const gate = createIssuanceGate({ state: "agrees" }, quiet);
const newRequest = () => certificateRequest(newPrivateKey(), "machine");

function join(token: string, csr = newRequest()) {
  const directory = { changed: () => undefined } as unknown as NodeDirectory;
  const deps = { system, authority, gate, directory, allowUnknownHosts: false, log: quiet };
  const from = { address: "127.0.0.1", correlationId: "test" };
  return enroll(deps, { token, csr, facts: hostFacts }, from);
}

/** Everything that any connection of this process sends meanwhile. */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const spy = vi.spyOn(Client.prototype, "query");
  try {
    await work();
    return spy.mock.calls.map(([query]) => (query as unknown as { text: string }).text.trim());
  } finally {
    spy.mockRestore();
  }
}

it("ID-01 a join takes no more statements than it needs", async () => {
  const token = await tokenFor("pairing");
  const csr = newRequest();
  const first = await statementsOf(() => join(token, csr));
  expect(first.at(-1)).toBe("COMMIT");
  expect(first).toHaveLength(MOST_STATEMENTS.join);
  expect(await statementsOf(() => join(token, csr))).toHaveLength(MOST_STATEMENTS.joinRepeated);
});

it("ID-09 a join of a node that exists takes no more statements than it needs", async () => {
  const { nodeId } = await join(await tokenFor("pairing"));
  const token = await tokenFor("pairing", nodeId);
  expect(await statementsOf(() => join(token))).toHaveLength(MOST_STATEMENTS.rejoin);
});

it("ID-01 a join with a bootstrap token takes no more statements than it needs", async () => {
  const token = await tokenFor("bootstrap");
  expect(await statementsOf(() => join(token))).toHaveLength(MOST_STATEMENTS.bootstrap);
});

it("ID-03 a renewal takes no more statements than it needs", async () => {
  const { nodeId, certificate } = await join(await tokenFor("pairing"));
  const node = { id: nodeId, orgId, serial: certificate.serial };
  const sent = await statementsOf(() => renew({ system, authority, gate }, node, newRequest()));
  expect(sent.at(-1)).toBe("COMMIT");
  expect(sent).toHaveLength(MOST_STATEMENTS.renewal);
});
