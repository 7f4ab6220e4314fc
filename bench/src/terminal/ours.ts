// Holdfast in the `terminal` bench: a complete `holdfast up` with its own agent, one user created by a real allocation,
// and a client that speaks the frames as the page and the CLI do.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { readUpFile } from "@holdfast/cli/up/up-file";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createAllocation, getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { closeTerminal, createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import {
  ACKNOWLEDGE_BYTES,
  type ClientFrame,
  type InputPlace,
  MOST_FRAME_BYTES,
  MOST_INPUT_BYTES,
  readServerFrame,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import { createTerminalInput } from "@holdfast/terminal-client/input";
import { WebSocket } from "ws";
import { firstOnline, startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { borrowedUser } from "./borrowed-user.ts";
import { type Output, size, type Terminal, type TerminalSide } from "./terminal.ts";

export type OurTerminals = TerminalSide & {
  pids: { agent: number; gateway: number };
  /** Of the tenant, by which its shells and holders are found. */
  uid: number;
};

/** More than the crowd needs: what is asked is what a machine carries, not what an operator allows. */
const most = { HOLDFAST_TERMINALS_PER_USER: "2000", HOLDFAST_TERMINALS_PER_NODE: "2000" };

export async function startOurTerminals(lab: Lab): Promise<OurTerminals> {
  const user = borrowedUser(lab);
  const dataDirectory = join(lab.directory(), "data");
  const { apiUrl } = await startHoldfast(lab, { dataDirectory, settings: most });
  const token = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const call = createClient({ baseUrl: apiUrl, token });
  const body = { node_id: await firstOnline(call), username: user.name };
  const allocationId = await active(call, (await call(createAllocation, { body })).id);
  const { uid, home } = user.account();
  for (const file of [".bashrc", ".profile", ".bash_logout"]) writeFileSync(join(home, file), "");
  const children = readUpFile(pathsIn(dataDirectory).upFile)?.children ?? {};
  const [agent, gateway] = [children["agent"]?.pid, children["gateway"]?.pid];
  if (agent === undefined || gateway === undefined) throw new Error("agent or gateway does not run");
  return { pids: { agent, gateway }, uid, open: (listener) => openOurs(call, allocationId, listener) };
}

async function active(call: Client, id: string): Promise<string> {
  for (let revision = 0; ; ) {
    const query = { wait_seconds: 20, revision };
    const allocation = await call(getAllocation, { params: { allocation_id: id }, query });
    if (allocation.status === "active") return id;
    if (allocation.status === "failed") throw new Error(`no user was made: ${allocation.reason?.message}`);
    ({ revision } = allocation);
  }
}

async function openOurs(
  call: Client,
  allocationId: string,
  listener: (output: Output) => void,
): Promise<Terminal> {
  let current = listener;
  const granted = await call(createTerminalToken, { params: { allocation_id: allocationId }, body: {} });
  const input = createTerminalInput<Buffer>(MOST_INPUT_BYTES);
  const protocols = [
    ...[TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${granted.token}`],
    `${WRITER_PROTOCOL}${input.writer}`,
  ];
  const socket = new WebSocket(granted.url, protocols, { perMessageDeflate: false, maxPayload: MOST_FRAME_BYTES });
  const send = (frame: ClientFrame) => socket.send(JSON.stringify(frame));
  const sendInput = () => {
    for (let piece = input.next(); piece; piece = input.next()) socket.send(piece);
  };
  const placeInput = (place: InputPlace | undefined) => {
    const answer = input.place(place);
    if (answer) send(answer);
    sendInput();
  };
  const ready = Promise.withResolvers<void>();
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  let received = 0;
  let acknowledged = 0;
  socket.once("open", () => send({ type: "resize", ...size }));
  socket.on("error", ready.reject);
  socket.on("message", (data: Buffer, isBinary: boolean) => {
    if (isBinary) {
      received += data.length;
      if (received - acknowledged >= ACKNOWLEDGE_BYTES) {
        acknowledged = received;
        send({ type: "ack", bytes: received });
      }
      return current(data);
    }
    const frame = readServerFrame(data.toString());
    if (frame?.type === "ready") {
      placeInput(frame.input);
      ready.resolve();
    }
    if (frame?.type === "input") placeInput(frame);
    if (frame?.type === "ack") {
      input.acknowledge(frame.bytes);
      sendInput();
    }
    if (frame?.type === "error") ready.reject(new Error(`${frame.code}: ${frame.message}`));
  });
  await ready.promise;
  return {
    write: (text) => {
      input.add(Buffer.from(text));
      sendInput();
    },
    listen: (next) => {
      current = next;
    },
    close: async () => {
      if (socket.readyState !== WebSocket.OPEN) return;
      await call(closeTerminal, { params: { terminal_id: granted.session_id } });
      await closed;
    },
  };
}
