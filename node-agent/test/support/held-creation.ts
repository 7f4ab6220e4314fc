// A socket in front of a docker daemon, which is slow to create a container: it gets the request only after it has been asked
// which containers there are.

import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export type HeldCreation = {
  /** The client has asked for a container. */
  asked: Promise<void>;
  /** The daemon has created it. */
  created: Promise<void>;
};

export async function holdCreation({ daemon, socket }: { daemon: string; socket: string }): Promise<HeldCreation> {
  const [asked, listed, created] = [gate(), gate(), gate()];
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = createConnection({ path: daemon, allowHalfOpen: true });
    let awaited: (() => void) | undefined;
    near.on("data", (request: Buffer) => {
      const [line = ""] = request.toString("latin1").split("\r\n", 1);
      if (/^GET \S*\/containers\/json/.test(line)) awaited = listed.open;
      if (!/^POST \S*\/containers\/create/.test(line)) return far.write(request);
      awaited = created.open;
      asked.open();
      void listed.opened.then(() => far.write(request));
    });
    far.on("data", (response: Buffer) => {
      near.write(response, awaited);
      awaited = undefined;
    });
    // Also a request whose client has ended still reaches the daemon.
    near.on("end", () => void (awaited === created.open ? created.opened.then(() => far.end()) : far.end()));
    far.on("end", () => near.end());
    for (const end of [near, far]) end.on("error", () => undefined);
    ends.add(far);
  });
  const ends = new Set<Socket>();
  atEnd(() => {
    for (const end of ends) end.destroy();
    server.close();
  });
  await once(server.listen(socket), "listening");
  return { asked: asked.opened, created: created.opened };
}

function gate(): { opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
