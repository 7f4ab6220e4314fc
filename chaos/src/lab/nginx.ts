// A real nginx in front of the api, on the router, where nodes find it by the api's name. With the shipped configuration,
// but for one thing: it verifies the certificates of clients itself, by a CA file of its own, as many installations do.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PATIENCE_SECONDS, until } from "../until.ts";
import { enrollIngress } from "./ingress.ts";
import { API_NAME, type Network } from "./network.ts";
import { type RunningProgram, start } from "./program.ts";

const shipped = fileURLToPath(new URL("../../../deploy/nginx/holdfast-nodes.conf", import.meta.url));

export type Nginx = {
  program: RunningProgram;
  /** It trusts clients by this CA from now on; undefined: by the one of the installation. Connections are closed. */
  trustsClientsOf(pem: string | undefined): Promise<void>;
};

export async function openNginx(options: {
  network: Network;
  directory: string;
  ingressToken: string;
  listen: string;
}): Promise<Nginx> {
  const { network } = options;
  const directory = join(options.directory, "nginx");
  mkdirSync(join(directory, "temp"), { recursive: true });
  const certificates = await enrollIngress(options);
  const [own, clients, pidFile] = [
    join(certificates, "trust.pem"),
    join(directory, "clients.pem"),
    join(directory, "pid"),
  ];
  writeFileSync(clients, readFileSync(own));
  // Hosts that enroll have no certificate yet.
  const verify = `ssl_verify_client optional;\n    ssl_verify_depth 2;\n    ssl_client_certificate ${clients};`;
  const servers = readFileSync(shipped, "utf8")
    .replaceAll("/etc/holdfast/ingress", certificates)
    .replaceAll("nodes.example.com", API_NAME)
    .replaceAll("ssl_verify_client optional_no_ca;", verify)
    // The api would decide about an expired certificate; this ingress does not ask it.
    .replaceAll(/^ *error_page 495 = @expired;\n/gm, "")
    .replace(/^ *server api-2:\d+.*\n/m, "")
    .replace("server api-1:", `server ${network.control.address}:`)
    // There is no gateway here.
    .replaceAll(/server gateway-\d:18443/g, "server 127.0.0.1:1")
    .replaceAll(/listen (\d+) ssl/g, `listen ${options.listen}:$1 ssl`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${directory}/temp/${kind};`,
  );
  writeFileSync(
    join(directory, "nginx.conf"),
    // A reload is to have an effect on nodes that are connected, too.
    `daemon off; user root; worker_processes 1; worker_shutdown_timeout 1s; pid ${pidFile}; error_log stderr info;
events { worker_connections 256; }
http { access_log off; ${temporary.join(" ")}\n${servers}\n}\n`,
  );
  const program = start({
    host: network.router,
    name: "nginx",
    command: ["/usr/sbin/nginx", "-c", join(directory, "nginx.conf"), "-p", directory],
    logFile: join(options.directory, "nginx.log"),
  });
  // Written when it listens.
  await until("nginx listens", PATIENCE_SECONDS, async () => existsSync(pidFile));
  return {
    program,
    async trustsClientsOf(pem) {
      writeFileSync(clients, pem ?? readFileSync(own));
      // Its parent is `nsenter`, which becomes the program it starts: the signal reaches nginx itself.
      program.signal("SIGHUP");
    },
  };
}

/** Where the api's name leads for the api itself, so that it reaches this way what it publishes to nodes. */
export function throughNginx(listen: string): Record<string, string> {
  return { HOLDFAST_NODE_RESOLVE: `${API_NAME}=${listen}` };
}
