// The agent in a VM, as far as a controller sees it: connects by what the VM's user data says, runs the builds that it is sent.

import { once } from "node:events";
import { WebSocket } from "ws";
import { atEnd } from "../lifetime/at-end.ts";

export type StandInAgent = {
  /** Ids of the builds that it was sent. */
  builds: string[];
  /** Resolves when the controller has sent a build. */
  building(): Promise<string>;
  done(build: string): void;
  /** As if the VM were gone. */
  cut(): Promise<void>;
};

/** The variables of the env file in a script that is user data. */
export function settingsIn(userData: string): Record<string, string> {
  return Object.fromEntries(
    [...userData.matchAll(/^(JENKINS_\w+)='([^']*)'$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}

/** `auto`: every build ends at once. */
export async function connectAgent(userData: string, { auto = false } = {}): Promise<StandInAgent> {
  const {
    JENKINS_URL: url = "",
    JENKINS_AGENT_NAME: name = "",
    JENKINS_SECRET: secret = "",
  } = settingsIn(userData);
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}wsagents/`, {
    headers: { "Node-Name": name, "Secret-Key": secret, "X-Remoting-Capability": "stand-in" },
  });
  const builds: string[] = [];
  const waiting = new Set<(id: string) => void>();
  socket.on("message", (data) => {
    const id = String(data).split(" ")[1] ?? "";
    builds.push(id);
    for (const resolve of waiting) resolve(id);
    if (auto) socket.send(`done ${id}`);
  });
  socket.on("error", () => undefined);
  atEnd(() => socket.terminate());
  await once(socket, "open");
  return {
    builds,
    building: async () => builds.at(-1) ?? new Promise((resolve) => waiting.add(resolve)),
    done: (build) => socket.send(`done ${build}`),
    async cut() {
      socket.terminate();
      if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close");
    },
  };
}
