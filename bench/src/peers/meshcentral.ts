// MeshCentral with its own agent, the nearest to what we do: client → server (TLS) → agent (TLS) → PTY. The
// server is the npm package, the agent the binary that lies in it; both keep everything in a directory of the lab.

import { createCipheriv, randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { WebSocket } from "ws";
import type { Lab } from "../lab.ts";
import { installPeer } from "../npm-peers.ts";
import { answers, freePort } from "../ports.ts";
import type { Program } from "../program.ts";
import { type PlainShell, plainPrompt } from "../terminal/plain-shell.ts";
import { size, type TerminalSide } from "../terminal/terminal.ts";

const user = "bench";
const agents: Partial<Record<NodeJS.Architecture, string>> = {
  x64: "meshagent_x86-64",
  arm64: "meshagent_aarch64",
};
/** Marks what is not output on a terminal's socket. */
const CONTROL_CHANNEL = "102938";
const SHELL = 1;
/** Its certificate is made at its first start, by itself, and proves nothing to us. */
const tls = { rejectUnauthorized: false };

export async function startMeshcentral(lab: Lab, shell: PlainShell): Promise<TerminalSide> {
  const agent = agents[process.arch];
  if (!agent) throw new Error(`no agent of MeshCentral is known for ${process.arch}`);
  const peer = await installPeer("meshcentral");
  const directory = lab.directory();
  const [data, files] = [join(directory, "data"), join(directory, "files")];
  for (const path of [data, files]) mkdirSync(path);
  const port = await freePort();
  const loginKey = randomBytes(80);
  writeFileSync(join(data, "config.json"), JSON.stringify(configurationOf({ port, loginKey, shell })));
  const server = (...more: string[]): Program => ({
    command: process.execPath,
    args: [join(peer.directory, "meshcentral.js"), "--datapath", data, "--filespath", files, ...more],
    env: { NODE_ENV: "production" },
  });
  await lab.start(server("--createaccount", user, "--pass", randomBytes(12).toString("hex"))).output;
  await lab.start(server("--adminaccount", user)).output;
  await answers(port, lab.start(server()));

  const control = await openControl(`wss://127.0.0.1:${port}/control.ashx?auth=${loginCookie(loginKey)}`);
  lab.onClose(async () => control.close());
  const group = await control.ask({ action: "createmesh", meshname: "bench", meshtype: 2 }, "createmesh");
  const groupId = String(group["meshid"]).split("/").at(-1) ?? "";
  await startAgent(lab, { binary: join(peer.directory, "agents", agent), port, groupId });
  const node = await firstConnected(control);
  return { open: (listener) => openShell({ control, node, port }, listener) };
}

function configurationOf(options: { port: number; loginKey: Buffer; shell: PlainShell }) {
  return {
    settings: {
      cert: "127.0.0.1",
      WANonly: true,
      port: options.port,
      portBind: "127.0.0.1",
      redirPort: 0,
      mpsPort: 0,
      selfUpdate: false,
      noAgentUpdate: 1,
      autoBackup: false,
      allowLoginToken: true,
      agentTimeStampServer: false,
      rootCertCommonName: "bench",
      loginCookieEncryptionKey: options.loginKey.toString("hex"),
    },
    domains: {
      "": {
        newAccounts: false,
        minify: false,
        terminal: { launchCommand: { linux: ` exec ${options.shell.path}\n` } },
      },
    },
  };
}

/** What `--loginkey` is for: whoever has the server's key signs in as anybody. */
function loginCookie(key: Buffer): string {
  const content = { userid: `user//${user}`, domainid: "", time: Math.floor(Date.now() / 1000) };
  const iv = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key.subarray(0, 32), iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(content), "utf8"), cipher.final()]);
  const cookie = Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64");
  return cookie.replaceAll("+", "@").replaceAll("/", "$");
}

type Message = Record<string, unknown>;
type Control = {
  send(message: Message): void;
  /** Resolves with the next message of that action. */
  ask(message: Message, action: string): Promise<Message>;
  close(): void;
};

async function openControl(url: string): Promise<Control> {
  const socket = new WebSocket(url, tls);
  const waiting = new Map<string, (message: Message) => void>();
  socket.on("message", (text) => {
    const message = JSON.parse(text.toString()) as Message;
    const action = String(message["action"]);
    waiting.get(action)?.(message);
    waiting.delete(action);
  });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  socket.on("error", () => undefined);
  const send = (message: Message) => socket.send(JSON.stringify(message));
  return {
    send,
    ask: (message, action) => {
      const answer = new Promise<Message>((resolve) => waiting.set(action, resolve));
      send({ ...message, responseid: "bench" });
      return answer;
    },
    close: () => socket.terminate(),
  };
}

async function startAgent(lab: Lab, options: { binary: string; port: number; groupId: string }): Promise<void> {
  const directory = lab.directory();
  const binary = join(directory, "meshagent");
  copyFileSync(options.binary, binary);
  chmodSync(binary, 0o755);
  writeFileSync(join(directory, "meshagent.msh"), await settingsOfGroup(options.port, options.groupId));
  lab.start({ command: binary, args: ["connect"], cwd: directory, env: { HOME: directory } });
}

async function settingsOfGroup(port: number, groupId: string): Promise<Buffer> {
  const { get } = await import("node:https");
  const url = `https://127.0.0.1:${port}/meshsettings?id=${groupId}`;
  return new Promise((resolve, reject) => {
    get(url, tls, async (response) => resolve(Buffer.concat(await response.toArray()))).on("error", reject);
  });
}

async function firstConnected(control: Control): Promise<string> {
  for (let tries = 0; tries < 300; tries += 1) {
    const { nodes } = (await control.ask({ action: "nodes" }, "nodes")) as {
      nodes: Record<string, { _id: string; conn?: number }[]>;
    };
    const connected = Object.values(nodes)
      .flat()
      .find((node) => ((node.conn ?? 0) & 1) === 1);
    if (connected) return connected._id;
    await pause(100);
  }
  throw new Error("MeshCentral's agent did not connect");
}

async function openShell(
  { control, node, port }: { control: Control; node: string; port: number },
  listener: Parameters<TerminalSide["open"]>[0],
) {
  let current = listener;
  const cookies = await control.ask({ action: "authcookie" }, "authcookie");
  const id = randomBytes(6).toString("hex");
  const relay = `meshrelay.ashx?p=${SHELL}&nodeid=${encodeURIComponent(node)}&id=${id}`;
  const socket = new WebSocket(`wss://127.0.0.1:${port}/${relay}&browser=1&auth=${cookies["cookie"]}`, tls);
  const value = `*/meshrelay.ashx?p=${SHELL}&nodeid=${node}&id=${id}&rauth=${cookies["rcookie"]}`;
  control.send({ action: "msg", nodeid: node, type: "tunnel", usage: SHELL, value, responseid: "bench" });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject).once("message", () => resolve());
  });
  const prompt = Promise.withResolvers<void>();
  let before: string | undefined = "";
  socket.on("message", (data: Buffer) => {
    if (data.length < 1024 && data.toString("latin1").startsWith(`{"ctrlChannel":"${CONTROL_CHANNEL}"`)) return;
    // The agent's own shell comes first, and is replaced by the plain one.
    if (before === undefined) return current(data);
    before += data.toString();
    if (!before.endsWith(plainPrompt)) return;
    current(before);
    before = undefined;
    prompt.resolve();
  });
  socket.send(JSON.stringify({ ctrlChannel: CONTROL_CHANNEL, type: "options", ...size }));
  socket.send(String(SHELL));
  await prompt.promise;
  return {
    write: (text: string) => socket.send(Buffer.from(text)),
    listen: (next: typeof listener) => {
      current = next;
    },
    close: () => socket.close(),
  };
}
