// The recovery protocol under lost, repeated and late messages and crashes of either side, against the real api: the agent
// is a model of what it has on its disk.

import { CallError } from "@holdfast/contracts/client";
import type { BodyInputOf } from "@holdfast/contracts/endpoint";
import { recoverNode } from "@holdfast/contracts/endpoints/recovery";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import {
  enrollTestNode,
  heartbeatOf,
  type KeyAndRequest,
  makeKeyRequest,
  openClient,
  type TestNode,
} from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let org: TestOrg;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  org = await createOrg(api, "ours");
});

type Body = BodyInputOf<typeof recoverNode>;
/** All that survives a crash of the agent. */
type Disk = {
  identity: { cert: string; key: string } | undefined;
  token: RecoveryToken | undefined;
  /** Written before the token is sent. */
  pending: { seq: number; keys: KeyAndRequest } | undefined;
};

class Machine {
  readonly disk: Disk;
  /** Whatever was ever sent may arrive again. */
  readonly sent: Body[] = [];
  /** The keys that each token was accepted with. */
  readonly acceptedKeys = new Map<string, Set<string>>();
  private readonly node: TestNode;

  constructor(node: TestNode) {
    this.node = node;
    this.disk = { identity: { cert: node.tls.cert, key: node.key }, token: undefined, pending: undefined };
  }

  /** `arrives`: whether the response does. */
  async heartbeat(arrives: boolean, tokenIsOld: boolean): Promise<boolean> {
    const { identity, token } = this.disk;
    if (!identity) return false;
    const aged = (at: string) => new Date(Date.parse(at) - (tokenIsOld ? 3_500_000 : 0)).toISOString();
    const recovery = token ? { seq: token.seq, expires_at: aged(token.expires_at) } : null;
    const client = openClient(api.nodeUrl, { ...identity, ca: this.node.tls.ca });
    const { status, body } = await client.ask({
      ...{ method: "POST", path: this.node.path("heartbeat"), body: heartbeatOf({ recovery }) },
    });
    client.close();
    await this.disconnect();
    if (status === 200 && arrives) this.keep(body["recovery"] as RecoveryToken | undefined);
    return status === 200;
  }

  /** `request`, `response`: whether it arrives. An agent that crashes before it sends or stores something is as if that was lost. */
  async recover({ request, response }: { request: boolean; response: boolean }): Promise<boolean> {
    const { token } = this.disk;
    if (!token) return false;
    if (this.disk.pending?.seq !== token.seq) {
      this.disk.pending = { seq: token.seq, keys: await makeKeyRequest() };
    }
    const { keys } = this.disk.pending;
    if (!request) return false;
    const answer = await this.post({
      ...{ token: token.token, csr: keys.csr, node_id: this.node.id, profile: "default", cause: "cert_expired" },
      ...{ sent_at: new Date().toISOString(), instance_id: uuidv7(), boot_id: "boot-1" },
    });
    if (!answer || !response) return answer !== undefined;
    this.disk.identity = { cert: answer.certificate, key: keys.key };
    this.disk.pending = undefined;
    this.keep(answer.recovery);
    return true;
  }

  /** A duplicate of an earlier request arrives late; its response goes nowhere. */
  async repeat(which: number): Promise<void> {
    const body = this.sent[which % Math.max(1, this.sent.length)];
    if (body) await this.post(body);
  }

  /** Somebody has a copy of a token that was used, and a key of their own. */
  async useAgain(which: number): Promise<void> {
    const used = this.sent.filter(({ token }) => this.acceptedKeys.has(token));
    const body = used[which % Math.max(1, used.length)];
    if (body) await this.post({ ...body, csr: (await makeKeyRequest()).csr });
  }

  /** The identity is worth nothing any more, as after a long outage. */
  async expire(): Promise<void> {
    await superuser`
      UPDATE node_certificates SET not_before = now() - interval '2 days', not_after = now() - interval '1 day'
      WHERE node_id = ${this.node.id}`;
    await this.disconnect();
  }

  /** Keys whose certificates are accepted. */
  async acceptedIdentities(): Promise<number> {
    const rows = await superuser`
      SELECT DISTINCT key_sha256 FROM node_certificates
      WHERE node_id = ${this.node.id} AND revoked_at IS NULL AND not_after > now()`;
    return rows.length;
  }

  private keep(token: RecoveryToken | undefined): void {
    if (token && token.seq > (this.disk.token?.seq ?? 0)) this.disk.token = token;
  }

  private async post(body: Body) {
    this.sent.push(body);
    try {
      const answer = await api.operator()(recoverNode, { body });
      const keys = this.acceptedKeys.get(body.token) ?? new Set();
      this.acceptedKeys.set(body.token, keys.add(body.csr));
      return answer;
    } catch (error) {
      if (error instanceof CallError) return undefined;
      throw error;
    }
  }

  private async disconnect(): Promise<void> {
    await superuser`UPDATE node_presence SET disconnected_at = now() WHERE node_id = ${this.node.id}`;
  }
}

/**
 * The api crashes so many turns after it was asked: its connections to the database end where they are, its response is
 * lost, and another process without its memory takes over.
 */
async function crashApi(request: Promise<unknown>, turns: number): Promise<void> {
  const settled = request.catch(() => undefined);
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await superuser`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename <> current_user`;
  await settled;
  await api.stop();
  api = await startTestApi({ database: api.database });
}

const often = 12;
const step = fc.oneof(
  {
    weight: often,
    arbitrary: fc.record({ do: fc.constant("heartbeat" as const), arrives: fc.boolean(), old: fc.boolean() }),
  },
  {
    weight: often,
    arbitrary: fc.record({ do: fc.constant("recover" as const), request: fc.boolean(), response: fc.boolean() }),
  },
  { weight: often, arbitrary: fc.record({ do: fc.constant("repeat" as const), which: fc.nat(20) }) },
  { weight: often / 2, arbitrary: fc.record({ do: fc.constant("use again" as const), which: fc.nat(20) }) },
  { weight: often, arbitrary: fc.record({ do: fc.constant("expire" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("crash" as const),
      during: fc.constantFrom("heartbeat", "recover", "recover"),
      turns: fc.nat(60),
    }),
  },
);

describe("the recovery protocol", () => {
  it("ID-04 never has two identities or a token with two keys, and never locks out a node with a current token", {
    timeout: 300_000,
  }, async () => {
    let recoveries = 0;
    let crashes = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async (steps) => {
        const machine = new Machine(await enrollTestNode(api, org.id));
        await machine.heartbeat(true, false);
        for (const one of steps) {
          if (one.do === "heartbeat") await machine.heartbeat(one.arrives, one.old);
          else if (one.do === "recover") recoveries += Number(await machine.recover(one));
          else if (one.do === "repeat") await machine.repeat(one.which);
          else if (one.do === "use again") await machine.useAgain(one.which);
          else if (one.do === "crash") {
            crashes += 1;
            const unanswered = { request: true, response: false };
            const isBeat = one.during === "heartbeat";
            await crashApi(isBeat ? machine.heartbeat(false, true) : machine.recover(unanswered), one.turns);
          } else await machine.expire();
          expect(await machine.acceptedIdentities()).toBeLessThanOrEqual(1);
        }
        for (const keys of machine.acceptedKeys.values()) expect(keys.size).toBe(1);
        // Whatever happened, the token on the disk is current.
        await machine.expire();
        expect(await machine.recover({ request: true, response: true })).toBe(true);
        expect(await machine.heartbeat(true, false)).toBe(true);
        expect(await machine.acceptedIdentities()).toBe(1);
      }),
      { numRuns: 40 },
    );
    expect(recoveries).toBeGreaterThan(20);
    expect(crashes).toBeGreaterThan(5);
  });
});
