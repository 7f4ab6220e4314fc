// Passes bytes on after a delay: relay-process <listen> <target> <milliseconds>. Their order and their pace stay.

import { connect, createServer, type Socket } from "node:net";

const [listen = "", target = "", delay = "0"] = process.argv.slice(2);

const server = createServer((near) => {
  const far = connect(placeOf(target));
  pass(near, far);
  pass(far, near);
});
server.listen(placeOf(listen), () => process.send?.({ type: "ready", ports: {} }));
process.once("disconnect", () => process.exit(0));

function pass(from: Socket, to: Socket): void {
  from.setNoDelay(true);
  from.on("data", (bytes) => setTimeout(() => to.destroyed || to.write(bytes), Number(delay)));
  from.on("error", () => undefined);
  from.on("close", () => setTimeout(() => to.destroy(), Number(delay)));
}

function placeOf(place: string): { host: string; port: number } {
  const [host = "", port] = place.split(":");
  return { host, port: Number(port) };
}
