// wetty: a web terminal in one Node.js process, plain HTTP, one hop. It gathers output for 2 ms before sending.

import { join } from "node:path";
import type { Lab } from "../lab.ts";
import { installPeer } from "../npm-peers.ts";
import { answers, freePort } from "../ports.ts";
import type { PlainShell } from "../terminal/plain-shell.ts";
import { size, type TerminalSide } from "../terminal/terminal.ts";

/** wetty's own page acknowledges about so often. */
const COMMIT_BYTES = 128 * 1024;

type Socket = {
  on(event: "data", listener: (text: string) => void): void;
  once(event: "connect" | "login" | "connect_error", listener: (reason: unknown) => void): void;
  emit(event: string, value: unknown): void;
  disconnect(): void;
};
type SocketIo = { io(url: string, options: Record<string, unknown>): Socket };

export async function startWetty(lab: Lab, shell: PlainShell): Promise<TerminalSide> {
  const peer = await installPeer("wetty");
  const { io } = peer.require("socket.io-client") as SocketIo;
  const port = await freePort();
  const program = lab.start({
    command: process.execPath,
    args: [
      join(peer.directory, "build/main.js"),
      ...["--host", "127.0.0.1", "--port", String(port), "--base", "/wetty"],
      ...["--command", shell.path, "--log-level", "error"],
    ],
    cwd: lab.directory(),
    env: { NODE_ENV: "production" },
  });
  await answers(port, program);
  return {
    open: async (listener) => {
      let current = listener;
      let uncommitted = 0;
      const options = { path: "/wetty/socket.io", transports: ["websocket"], forceNew: true };
      const socket = io(`http://127.0.0.1:${port}`, options);
      socket.on("data", (text) => {
        uncommitted += text.length;
        if (uncommitted >= COMMIT_BYTES) {
          socket.emit("commit", uncommitted);
          uncommitted = 0;
        }
        current(text);
      });
      await new Promise((resolve, reject) => {
        socket.once("login", resolve);
        socket.once("connect_error", reject);
      });
      socket.emit("resize", size);
      return {
        write: (text) => socket.emit("input", text),
        listen: (next) => {
          current = next;
        },
        close: () => socket.disconnect(),
      };
    },
  };
}
