// Two attacks on a whole installation, with a real agent and a real shell: a removed admin who kept a token for a live
// node, and a thief with a stolen session. Each step is what the attacker would do.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import type { AuditEvent } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getMe, type Me } from "@holdfast/contracts/endpoints/me";
import { inviteMember, removeMember } from "@holdfast/contracts/endpoints/members";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { readServerFrame } from "@holdfast/contracts/terminal/frames";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { lacks } from "../../../scripts/facilities.mjs";
import { PASSWORD } from "../../../testkit/api/api.ts";
import { openShells, type Shells } from "../support/shells.ts";

type Person = { me: Me; client: Client; cookie: string };

describe.skipIf(lacks("root"))("an attacker", () => {
  let shells: Shells;
  let url: string;
  let operator: Client;
  const sockets: WebSocket[] = [];

  beforeAll(async () => {
    shells = await openShells();
    url = (await shells.up.ready).api_url;
    const token = readFileSync(join(shells.installation.dataDir, "operator-token"), "utf8").trim();
    operator = createClient({ baseUrl: url, token });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.terminate();
    await shells.cleanUp();
  });

  const post = (path: string, body: unknown, cookie = "") =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: url, cookie },
      body: JSON.stringify(body),
    });

  async function enter(path: string, body: unknown): Promise<Person> {
    const response = await post(path, body);
    const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const withCookie: typeof fetch = (input, init) =>
      fetch(input, { ...init, headers: { ...(init?.headers as object), cookie, origin: url } });
    return {
      me: (await response.json()) as Me,
      client: createClient({ baseUrl: url, fetch: withCookie }),
      cookie,
    };
  }

  async function newAdmin(email: string): Promise<Person> {
    const { url: link } = await operator(inviteMember, { body: { email, role: "admin" } });
    const secret = new URL(link).hash.slice(1);
    return enter("/v1/links/redeem", { secret, name: email, password: PASSWORD });
  }

  /** A shell as the thief has it: the frame or the close that ended it. */
  async function openShell(thief: Person): Promise<{ ended: Promise<string> }> {
    const params = { allocation_id: shells.allocation.id };
    const { token, url: gateway } = await thief.client(createTerminalToken, { params, body: {} });
    const socket = new WebSocket(gateway, ["holdfast.terminal.v1", `holdfast.token.${token}`]);
    sockets.push(socket);
    const ready = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    socket.on("message", (data, isBinary) => {
      const frame = isBinary ? undefined : readServerFrame(data.toString());
      if (frame?.type === "ready") ready.resolve();
      if (frame?.type === "error") ended.resolve(frame.code);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => ended.resolve("closed"));
    await ready.promise;
    return { ended: ended.promise };
  }

  it("SEC-03 with a stolen session loses the shell when the password is changed, and the session", async () => {
    const email = "alice@example.com";
    const alice = await newAdmin(email);
    const thief = await enter("/v1/sign-in", { email, password: PASSWORD });
    const shell = await openShell(thief);
    const body = { current_password: PASSWORD, new_password: "a new and longer one" };
    expect((await post("/v1/me/password", body, alice.cookie)).ok).toBe(true);
    expect(await shell.ended).toBe("terminal_signed_out");
    await expect(thief.client(getMe, {})).rejects.toMatchObject({ envelope: { code: "unauthenticated" } });
  });

  it("SEC-03 with a copy of the victim's own cookie, and a token made with it, keeps neither if that is chosen", async () => {
    const victim = await newAdmin("bob@example.com");
    const { token } = await victim.client(createToken, { body: { name: "backdoor", role: "admin" } });
    const backdoor = createClient({ baseUrl: url, token });
    const shell = await openShell({ ...victim, client: backdoor });
    const body = { current_password: PASSWORD, new_password: "a new and longer one", revoke_tokens: true };
    expect((await post("/v1/me/password", body, victim.cookie)).status).toBe(200);
    expect(await shell.ended).toBe("terminal_signed_out");
    for (const client of [victim.client, backdoor]) {
      await expect(client(getMe, {})).rejects.toMatchObject({ envelope: { code: "unauthenticated" } });
    }
  });

  // Last: where it succeeds, the node is lost to the tests after it.
  it("ID-01 who was removed as admin takes no live node over with a token kept from before", async () => {
    const mallory = await newAdmin("mallory@example.com");
    const kept = await mallory.client(createEnrollmentToken, {
      body: { node_id: shells.node.id, expires_in_minutes: 1440 },
    });
    await operator(removeMember, { params: { user_id: mallory.me.id ?? "" } });
    const elsewhere = { HOLDFAST_AGENT_STATE_DIR: join(shells.scratch, "mallory") };
    const joined = await shells.run(
      ["agent", "join", "--token", kept.token, "--api", kept.api_url, "--json"],
      elsewhere,
    );
    expect(joined.code, joined.stdout).not.toBe(0);
    expect(joined.stderr).toContain("enrollment_token_revoked");
    expect((await shells.run(["task", "run", shells.node.name, "node.noop", "--expires", "60"])).code).toBe(0);
    const { items } = await shells.json<{ items: AuditEvent[] }>(["audit", "list", "--action", "node.enroll"]);
    expect(items[0]).toMatchObject({
      result: "failed",
      reason: "enrollment_token_revoked",
      target_id: kept.id,
    });
  });
});
