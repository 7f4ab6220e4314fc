// The name server of a lab, on its router: knows the server's name, and can be set to resolve it to something else; with a gateway,
// that one's name, too.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";
import { API_NAME, TERMINAL_NAME } from "./network.ts";
import { start } from "./program.ts";

export type NameServer = {
  /** What the server's name leads to from now on; undefined: it refuses to say. */
  answer(address: string | undefined): void;
  /** The same of the gateway's name. */
  answerTerminal(address: string | undefined): void;
  stop(): Promise<void>;
};

/** Without any server to ask further, an unknown name is refused. */
const settings = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--user=root"];

export function openNameServer(options: {
  router: Host;
  address: string;
  terminalAddress: string | undefined;
  listen: readonly string[];
  directory: string;
}): NameServer {
  const file = join(options.directory, "names");
  const known: Record<string, string | undefined> = {
    [API_NAME]: options.address,
    [TERMINAL_NAME]: options.terminalAddress,
  };
  const write = () =>
    writeFileSync(
      file,
      Object.entries(known)
        .map(([name, address]) => (address === undefined ? "" : `${address} ${name}\n`))
        .join(""),
    );
  write();
  const listen = options.listen.map((address) => `--listen-address=${address}`);
  const command = ["dnsmasq", ...settings, "--bind-interfaces", "--pid-file=", `--addn-hosts=${file}`, ...listen];
  const logFile = join(options.directory, "dnsmasq.log");
  const server = start({ host: options.router, name: "dnsmasq", command, logFile });
  const answer = (name: string, address: string | undefined) => {
    known[name] = address;
    write();
    server.signal("SIGHUP");
  };
  return {
    answer: (address) => answer(API_NAME, address),
    answerTerminal: (address) => answer(TERMINAL_NAME, address),
    stop: () => server.stop("SIGKILL"),
  };
}
