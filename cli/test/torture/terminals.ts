// Opens terminals through the whole path, from the token to the shell, and drops each abruptly, at different
// moments. Afterwards nothing of them may be left: no process, PTY, socket, binding or open session; and what
// gateway and agent hold in memory does not grow with their number.

import { readdirSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createTerminalToken, listTerminals, type TerminalState } from "@holdfast/contracts/endpoints/terminals";
import { readServerFrame, TERMINAL_PROTOCOL, TOKEN_PROTOCOL } from "@holdfast/contracts/terminal/frames";
import { findSockets } from "@holdfast/node-agent/terminals/directory";
import WebSocket from "ws";
import { until } from "../../../testkit/processes/holdfast.ts";
import { openShells, type Shells } from "../support/shells.ts";
import { type Memory, memoryOf, withInspector } from "./memory.ts";
import { randomFrom } from "./random.ts";

/** When the connection is cut. */
const moments = [
  "before it is ready",
  "when it is ready",
  "in the middle of output",
  "with input under way",
] as const;
type Moment = (typeof moments)[number] | "before it is a WebSocket";

/** As many as one person may have open at a time. */
const WAVE = 20;
/** A token that was not used is waited for a minute long, and few of them are allowed. */
const UNUSED_EVERY = 50;
const INPUT = Buffer.alloc(64 * 1024, "kelp ");
const OUTPUT_BYTES = 100_000;
const TOLERANCE = 0.1;

export type LeftOver = {
  processes: number;
  ptys: number;
  /** Of holders, in the agent's directory. */
  sockets: number;
  /** Terminals, bindings, sockets and untold events of the gateway. */
  gateway: number;
  /** Sessions that the api believes to be there. */
  sessions: number;
};

export type Dropped = {
  drops: Record<Moment, number>;
  wereReady: number;
  /** What was said to a client instead of being ready. */
  refused: string[];
  /** The most that was there after a wave: what is seen to be gone was there to be seen. */
  most: LeftOver;
  left: LeftOver;
};
export type TerminalTortureReport = Dropped & {
  seed: number;
  sessions: Record<string, number>;
  memory: Measured[];
  /** What holds more at the end than after the first fifth, beyond what any two measurements differ by. */
  grew: string[];
};
type Measured = { after: number; gateway: Memory; agent: Memory };

/** What a shell without a client lives for: short, so that the end is soon there to be seen. */
export const shortLived = { HOLDFAST_TERMINAL_DETACHED_SECONDS: "1" };

export async function tortureTerminals(options: {
  terminals: number;
  seed: number;
  onWave(text: string): void;
}): Promise<TerminalTortureReport> {
  const shells = await openShells({ ...shortLived, ...withInspector });
  try {
    const call = await clientOf(shells);
    const memory: Measured[] = [];
    const measure = async (after: number) => {
      const { gateway, agent } = shells.installation.upFile().children;
      const logs = `${shells.installation.dataDir}/logs`;
      memory.push({
        after,
        gateway: await memoryOf(gateway?.pid ?? 0, `${logs}/gateway.log`),
        agent: await memoryOf(agent?.pid ?? 0, `${logs}/agent.log`),
      });
    };
    const dropped = await dropTerminals(shells, {
      ...options,
      async onWave(done) {
        options.onWave(`${done} of ${options.terminals} dropped`);
        // The first fifth warms up what is kept for good.
        if (done % Math.max(WAVE, options.terminals / 5) < WAVE) await measure(done);
      },
    });
    const sessions = await sessionsByState(call, shells);
    return { seed: options.seed, ...dropped, sessions, memory, grew: growth(memory) };
  } finally {
    await shells.cleanUp();
  }
}

function growth(memory: Measured[]): string[] {
  const [first, last] = [memory[0], memory.at(-1)];
  if (!first || !last) return [];
  return (["gateway", "agent"] as const).flatMap((name) =>
    (["resident", "heap"] as const)
      .filter((kind) => last[name][kind] > first[name][kind] * (1 + TOLERANCE))
      .map((kind) => `${name}: ${kind} memory from ${first[name][kind]} to ${last[name][kind]} MB`),
  );
}

type DropOptions = { terminals: number; seed: number; onWave?(done: number): Promise<void> };

/** Waits until all of them are gone, as `shortLived` makes them. */
export async function dropTerminals(shells: Shells, options: DropOptions): Promise<Dropped> {
  const call = await clientOf(shells);
  const random = randomFrom(options.seed);
  const drops: Record<string, number> = {};
  const refused: string[] = [];
  const most: LeftOver = { processes: 0, ptys: 0, sockets: 0, gateway: 0, sessions: 0 };
  let wereReady = 0;
  const dropOne = async (index: number) => {
    const unused = (index + 1) % UNUSED_EVERY === 0;
    const moment: Moment = unused ? "before it is a WebSocket" : (moments[index % moments.length] ?? moments[0]);
    drops[moment] = (drops[moment] ?? 0) + 1;
    const allocation_id = shells.allocation.id;
    const granted = await call(createTerminalToken, { params: { allocation_id }, body: {} });
    const { wasReady, refusal } = await openAndDrop(granted, moment, random);
    if (wasReady) wereReady += 1;
    if (refusal) refused.push(refusal);
  };
  for (let done = 0; done < options.terminals; ) {
    const wave = Math.min(WAVE, options.terminals - done);
    await Promise.all(Array.from({ length: wave }, (_, index) => dropOne(done + index)));
    done += wave;
    await until(async () => {
      const left = await leftOver(call, shells);
      for (const kind of Object.keys(left) as (keyof LeftOver)[]) most[kind] = Math.max(most[kind], left[kind]);
      const { sessions, ...others } = left;
      return Object.values(others).every((count) => count === 0);
    });
    await options.onWave?.(done);
  }
  await until(async () => (await leftOver(call, shells)).sessions === 0);
  const left = await leftOver(call, shells);
  return { drops: drops as Record<Moment, number>, wereReady, refused, most, left };
}

/** Answers, once the connection is gone, how far it had come. */
async function openAndDrop(
  { url, token }: { url: string; token: string },
  moment: Moment,
  random: () => number,
): Promise<{ wasReady: boolean; refusal: string | undefined }> {
  const { hostname, port } = new URL(url);
  const raw: Socket = connect(Number(port), hostname);
  const politely = random() < 0.5;
  const drop = () => (politely ? raw.destroy() : raw.resetAndDestroy());
  const dropSoon = async () => {
    await pause(random() * 40);
    drop();
  };
  raw.on("error", () => undefined);
  const gone = new Promise((resolve) => raw.once("close", resolve));
  if (moment === "before it is a WebSocket") raw.once("connect", () => setImmediate(drop));
  const protocols = [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${token}`];
  const socket = new WebSocket(url, protocols, { createConnection: () => raw });
  let wasReady = false;
  let refusal: string | undefined;
  let received = 0;
  socket.on("error", () => undefined);
  socket.on("open", () => {
    if (moment === "before it is ready") void dropSoon();
  });
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) {
      received += data.length;
      if (moment === "in the middle of output" && received >= OUTPUT_BYTES) drop();
      return;
    }
    const frame = readServerFrame(data.toString());
    if (frame?.type === "error") refusal = `${frame.code}: ${frame.message}`;
    if (frame?.type !== "ready") return;
    wasReady = true;
    if (moment === "when it is ready") drop();
    else if (moment === "in the middle of output") socket.send(Buffer.from("yes\r"));
    else if (moment === "with input under way") {
      socket.send(Buffer.from("cat > /dev/null\r"));
      for (let count = 0; count < 16; count += 1) socket.send(INPUT);
      void dropSoon();
    }
  });
  await gone;
  return { wasReady, refusal };
}

async function clientOf(shells: Shells): Promise<Client> {
  const { token } = await shells.json<{ token: string }>(["token", "create", "--name", "t", "--role", "admin"]);
  return createClient({ baseUrl: (await shells.up.ready).api_url, token });
}

async function leftOver(call: Client, shells: Shells): Promise<LeftOver> {
  const { uid } = statSync(String(shells.allocation.home));
  const { gateway_url, agent } = await shells.up.ready;
  const metrics = await (await fetch(`${gateway_url}/metrics`)).text();
  const [opening, open] = await Promise.all([listed(call, "opening"), listed(call, "open")]);
  const held = metrics.matchAll(/^holdfast_gateway_(?:terminals|held)\{[^}]*\} (\d+)/gm);
  return {
    processes: ownedBy(uid, "/proc", /^\d+$/),
    ptys: ownedBy(uid, "/dev/pts", /^\d+$/),
    sockets: findSockets(agent?.state_dir ?? "").filter(({ kind }) => kind === "shell").length,
    gateway: [...held].reduce((sum, [, count]) => sum + Number(count), 0),
    sessions: opening + open,
  };
}

async function listed(call: Client, state: TerminalState): Promise<number> {
  return (await call(listTerminals, { query: { state, limit: 200 } })).items.length;
}

function ownedBy(uid: number, directory: string, names: RegExp): number {
  const owners = readdirSync(directory)
    .filter((name) => names.test(name))
    .map((name) => statSync(`${directory}/${name}`, { throwIfNoEntry: false })?.uid);
  return owners.filter((owner) => owner === uid).length;
}

async function sessionsByState(call: Client, shells: Shells): Promise<Record<string, number>> {
  const states: Record<string, number> = {};
  let cursor: string | undefined;
  do {
    const query = { allocation_id: shells.allocation.id, limit: 200, cursor };
    const { items, next_cursor } = await call(listTerminals, { query });
    for (const { state } of items) states[state] = (states[state] ?? 0) + 1;
    cursor = next_cursor ?? undefined;
  } while (cursor !== undefined);
  return states;
}
