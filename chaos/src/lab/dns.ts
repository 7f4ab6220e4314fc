// The name server of a lab, on its router: knows one name, and can be set to resolve it to something else.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";
import { API_NAME } from "./network.ts";
import { start } from "./program.ts";

export type NameServer = {
  /** What the server's name leads to from now on; undefined: it refuses to say. */
  answer(address: string | undefined): void;
  stop(): Promise<void>;
};

/** Without any server to ask further, an unknown name is refused. */
const settings = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--user=root"];

export function openNameServer(options: {
  router: Host;
  address: string;
  listen: readonly string[];
  directory: string;
}): NameServer {
  const file = join(options.directory, "names");
  const write = (address: string | undefined) =>
    writeFileSync(file, address === undefined ? "" : `${address} ${API_NAME}\n`);
  write(options.address);
  const listen = options.listen.map((address) => `--listen-address=${address}`);
  const command = ["dnsmasq", ...settings, "--bind-interfaces", "--pid-file=", `--addn-hosts=${file}`, ...listen];
  const logFile = join(options.directory, "dnsmasq.log");
  const server = start({ host: options.router, name: "dnsmasq", command, logFile });
  return {
    answer(address) {
      write(address);
      server.signal("SIGHUP");
    },
    stop: () => server.stop("SIGKILL"),
  };
}
