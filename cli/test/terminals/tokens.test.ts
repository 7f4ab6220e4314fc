// Terminal tokens between whole processes: good for one connection of one person, and written nowhere.

import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { readServerFrame, type ServerFrame } from "@holdfast/contracts/terminal/frames";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { lacks } from "../../../scripts/facilities.mjs";
import { openShells, type Shells } from "../support/shells.ts";

type Granted = { token: string; url: string; session_id: string };
/** How a connection with a token ended: `ready` leaves it open. */
type Outcome = { result: string; headers: IncomingMessage["headers"]; socket: WebSocket };

describe.skipIf(lacks("root"))("a terminal token", () => {
  let shells: Shells;
  /** Two people of the same organization, and one of another. */
  let one: Client;
  let another: Client;
  let stranger: Client;
  const tokens: string[] = [];
  const sockets: WebSocket[] = [];

  beforeAll(async () => {
    shells = await openShells();
    const { items } = await shells.json<{ items: { slug: string }[] }>(["org", "list"]);
    const own = items[0]?.slug ?? "";
    await shells.json(["org", "create", "elsewhere"]);
    one = await clientIn(own);
    another = await clientIn(own);
    stranger = await clientIn("elsewhere");
  });
  afterAll(async () => {
    for (const socket of sockets) socket.terminate();
    await shells.cleanUp();
  });

  async function clientIn(org: string): Promise<Client> {
    const made = await shells.json<{ token: string }>([
      "token",
      "create",
      "--name",
      "t",
      "--role",
      "admin",
      "--org",
      org,
    ]);
    return createClient({ baseUrl: (await shells.up.ready).api_url, token: made.token });
  }

  async function mint(client: Client, sessionId?: string): Promise<Granted> {
    const granted = await client(createTerminalToken, {
      params: { allocation_id: shells.allocation.id },
      body: { session_id: sessionId },
    });
    tokens.push(granted.token);
    return granted;
  }

  async function use({ url, token }: Pick<Granted, "url" | "token">): Promise<Outcome> {
    const socket = new WebSocket(url, ["holdfast.terminal.v1", `holdfast.token.${token}`]);
    sockets.push(socket);
    let headers: IncomingMessage["headers"] = {};
    socket.on("upgrade", (response) => {
      headers = response.headers;
    });
    const result = await new Promise<string>((resolve) => {
      socket.on("unexpected-response", (_request, response) => {
        headers = response.headers;
        resolve(`http ${response.statusCode}`);
      });
      socket.on("message", (data, isBinary) => {
        const frame: ServerFrame | undefined = isBinary ? undefined : readServerFrame(data.toString());
        if (frame?.type === "ready") resolve("ready");
        if (frame?.type === "error") resolve(frame.code);
      });
      socket.on("error", () => undefined);
      socket.on("close", () => resolve("closed"));
    });
    return { result, headers, socket };
  }

  it("TERM-01 opens one terminal, and is refused the second time", async () => {
    const granted = await mint(one);
    const { result, headers, socket } = await use(granted);
    expect(result).toBe("ready");
    expect(headers["sec-websocket-protocol"]).toBe("holdfast.terminal.v1");
    expect(JSON.stringify(headers)).not.toContain(granted.token);
    expect(granted.url).not.toContain(granted.token);
    const again = await use(granted);
    expect(again.result).toBe("terminal_token_refused");
    expect(JSON.stringify(again.headers)).not.toContain(granted.token);
    expect(socket.readyState, "the first goes on").toBe(WebSocket.OPEN);
  });

  it("TERM-01 opens one terminal when many connections race for it", async () => {
    const granted = await mint(one);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => use(granted)));
    const results = outcomes.map(({ result }) => result).sort();
    expect(results).toEqual(["ready", ...Array.from({ length: 7 }, () => "terminal_token_refused")]);
  });

  it("TERM-01 that is none, or only begins like one, opens nothing", async () => {
    const granted = await mint(one);
    for (const token of [granted.token.slice(0, -1), `${granted.token}x`, "hfp_", "x".repeat(150)]) {
      const { result } = await use({ ...granted, token });
      expect(result).not.toBe("ready");
    }
    expect((await use(granted)).result).toBe("ready");
  });

  it("TERM-01 for somebody's shell is given to nobody else, in this organization or another", async () => {
    const granted = await mint(one);
    expect((await use(granted)).result).toBe("ready");
    await expect(mint(another, granted.session_id)).rejects.toMatchObject({
      envelope: { code: "terminal_session_unknown" },
    });
    await expect(mint(stranger)).rejects.toMatchObject({ envelope: { code: "not_found" } });
    await expect(mint(stranger, granted.session_id)).rejects.toMatchObject({ envelope: { code: "not_found" } });
  });

  it("SEC-03 stands in no log of any process, no audit event and no metric", async () => {
    const ready = await shells.up.ready;
    const logs = join(shells.installation.dataDir, "logs");
    // With the lines that each process keeps, below it.
    const files = readdirSync(logs, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"));
    texts.push((await shells.run(["audit", "list", "--limit", "200", "--json"])).stdout);
    for (const url of [ready.api_url, ready.gateway_url]) texts.push(await (await fetch(`${url}/metrics`)).text());
    expect(texts.length).toBeGreaterThan(5);
    expect(tokens.length).toBeGreaterThan(3);
    for (const token of tokens) for (const text of texts) expect(text.includes(token.slice(4))).toBe(false);
  });
});
