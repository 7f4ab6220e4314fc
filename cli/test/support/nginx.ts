// A real nginx with the configuration of deploy/nginx, its addresses and paths replaced by the test's own.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";

const deploy = fileURLToPath(new URL("../../../deploy/nginx/", import.meta.url));

export type Nginx = {
  /** Where `holdfast ingress` writes. */
  certificates: string;
  pidFile: string;
  ports: { nodeApi: number; nodeTerminals: number; public: number };
  /** When the certificates are there. */
  start(): Promise<void>;
  errors(): string;
};

/** Ports of what is behind it; without any of a kind, nobody answers there. */
export type Behind = { nodeApis: number[]; gateways?: number[]; apis?: number[]; publicGateways?: number[] };

/** `name`: what nodes call it. */
export async function prepareNginx(behind: Behind, name: string): Promise<Nginx> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-nginx-"));
  // Its workers are of another account when the tests run as root.
  chmodSync(directory, 0o711);
  const certificates = join(directory, "ingress");
  const pidFile = join(directory, "nginx.pid");
  const [nodeApi, nodeTerminals, publicPort, nobody] = await freePorts<[number, number, number, number]>(4);
  const ports = { nodeApi, nodeTerminals, public: publicPort };
  const servers = (all: readonly number[] = []) => (all.length === 0 ? [nobody] : all);

  const rewrite = (file: string): string =>
    [
      [/\/etc\/holdfast\/ingress/g, certificates],
      [/\/etc\/holdfast\/public/g, join(directory, "public")],
      [/\/etc\/nginx\/holdfast/g, directory],
      [/\/run\/nginx\.pid/g, pidFile],
      [/^error_log .*$/m, `error_log ${directory}/error.log info;`],
      [/worker_rlimit_nofile \d+;/, ""],
      [/^worker_processes auto;$/m, "daemon off;\nworker_processes 1;"],
      [/worker_connections \d+;/, "worker_connections 512;"],
      [/listen 18442 ssl/, `listen 127.0.0.1:${nodeApi} ssl`],
      [/listen 18443 ssl/, `listen 127.0.0.1:${nodeTerminals} ssl`],
      [/listen 443 ssl/, `listen 127.0.0.1:${publicPort} ssl`],
      [/nodes\.example\.com/g, name],
      // As everywhere shorter than the api drains, which in a test is not long.
      [/keepalive_timeout 4s/g, "keepalive_timeout 1s"],
    ].reduce<string>(
      (text, [from, to]) => text.replace(from as RegExp, to as string),
      withServers(readFileSync(join(deploy, file), "utf8"), {
        18442: servers(behind.nodeApis),
        18443: servers(behind.gateways),
        3001: servers(behind.apis),
        3002: servers(behind.publicGateways),
      }),
    );

  mkdirSync(join(directory, "temp"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `    ${kind}_temp_path ${directory}/temp/${kind};`)
    .join("\n");
  writeFileSync(join(directory, "nginx.conf"), rewrite("nginx.conf").replace("http {", `http {\n${temporary}`));
  for (const file of ["holdfast-nodes.conf", "holdfast-public.conf"]) {
    writeFileSync(join(directory, file), rewrite(file));
  }
  let child: ChildProcess | undefined;
  const errors = () => readFileSync(join(directory, "error.log"), "utf8");
  atEnd(async () => {
    if (child?.exitCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    certificates,
    pidFile,
    ports,
    errors,
    async start() {
      writeOwnCertificate(directory, certificates);
      const started = spawn("/usr/sbin/nginx", ["-c", join(directory, "nginx.conf"), "-p", directory], {
        stdio: ["ignore", "inherit", "inherit"],
      });
      child = started;
      const ended = once(started, "exit").then(([code]) => {
        throw new Error(`nginx ended with ${code}:\n${errors()}`);
      });
      ended.catch(() => undefined);
      await Promise.race([listening(ports.nodeApi), ended]);
    },
  };
}

/** One server line for each port that is behind, in the form of the line that stands there. */
function withServers(text: string, behind: Record<number, readonly number[]>): string {
  let out = text;
  for (const [port, own] of Object.entries(behind)) {
    const line = new RegExp(`^    server [a-z0-9-]+:${port}( [^;]*)?;\\n`, "gm");
    const options = line.exec(out)?.[1] ?? "";
    let first = true;
    out = out.replace(line, () => {
      if (!first) return "";
      first = false;
      return own.map((one) => `    server 127.0.0.1:${one}${options};\n`).join("");
    });
  }
  return out;
}

/** The public listener's certificate is the operator's own; here the nodes' one serves. */
function writeOwnCertificate(directory: string, certificates: string): void {
  const pem = readFileSync(join(certificates, "listener.pem"), "utf8");
  writeFileSync(join(directory, "public.pem"), pem);
  writeFileSync(join(directory, "public.key"), pem);
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
