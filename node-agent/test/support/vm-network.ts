// An invented host with an agent for VMs on it, and a machine outside that the host has a route to. Both serve a page over HTTP,
// the host at its loopback only.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { VmInventory, VmLaunch } from "@holdfast/contracts/node/vm-host";
import { expect } from "vitest";
import { type Host, openHost } from "../../../chaos/src/lab/host.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import type { VmAgentRequest } from "./vm-agent.ts";
import type { VmPlace } from "./vm-host.ts";

export const OUTSIDE = "10.77.0.1";
export const METADATA = "169.254.169.254";
export const PORT = 8080;

export type VmNetworkHost = {
  host: Host;
  /** Runs an agent with this place on it. */
  agent(place: VmPlace): Promise<VmAgent>;
  /** Serves a page with this text, until the test ends. */
  serve(on: Host, address: string, text: string): Promise<void>;
};

export type VmAgent = {
  launch(wanted: VmLaunch): Promise<{ pid: number; serial_log: string }>;
  terminate(vmId: string): Promise<void>;
  inventory(): Promise<VmInventory>;
  /** As an agent that is killed. */
  kill(): Promise<void>;
};

export async function openVmNetwork(): Promise<VmNetworkHost> {
  const root = scratchDirectory();
  // The resolver of the host listens at its loopback, as systemd-resolved does.
  const open = (name: string, nameServer?: string) =>
    openHost({ name, directory: join(root, name), ...(nameServer === undefined ? {} : { nameServer }) });
  const [host, outside] = await Promise.all([open("host", "127.0.0.1"), open("outside")]);
  for (const { pid } of [host, outside]) atEnd(() => process.kill(pid, "SIGKILL"));
  // Its own interfaces are in it, not those of the machine.
  await host.run("mount", "-t", "sysfs", "sysfs", "/sys");
  await host.ip(`link add cable type veth peer name cable netns ${outside.pid}`);
  await host.ip("addr add 10.77.0.2/24 dev cable", "link set cable up", `route add default via ${OUTSIDE}`);
  await outside.ip(
    ...[`addr add ${OUTSIDE}/24 dev cable`, `addr add ${METADATA}/32 dev cable`, "link set cable up"],
  );
  const begin = (on: Host, ...command: string[]) => {
    const [program = "", ...args] = [...on.enter, ...command];
    const child = spawn(program, args, { stdio: "ignore", cwd: "/" });
    atEnd(() => child.kill("SIGKILL"));
  };
  const serve: VmNetworkHost["serve"] = async (on, address, text) => {
    const folder = join(root, `${address}-page`);
    mkdirSync(folder);
    writeFileSync(join(folder, "index.html"), text);
    begin(on, "busybox", "httpd", "-f", "-p", `${address}:${PORT}`, "-h", folder);
    const page = () => on.run("busybox", "wget", "-q", "-O-", `http://${address}:${PORT}/`).catch(() => "");
    await expect.poll(page, { timeout: 20_000 }).toBe(text);
  };
  await serve(outside, OUTSIDE, "outside");
  await serve(outside, METADATA, "credentials");
  await serve(host, "127.0.0.1", "loopback");
  const names = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--user=root"];
  begin(
    host,
    "dnsmasq",
    ...names,
    "--pid-file=",
    "--listen-address=127.0.0.1",
    "--address=/outside.test/10.77.0.1",
  );
  return { host, serve, agent: (place) => startAgent(host, place) };
}

async function startAgent(host: Host, place: VmPlace): Promise<VmAgent> {
  const script = join(import.meta.dirname, "vm-agent.ts");
  const [program = "", ...args] = [...host.enter, process.execPath, script];
  // Not as an argument: by arguments, what is left of VMs is found.
  const env = { ...process.env, VM_PLACE: JSON.stringify(place) };
  const child = spawn(program, args, { env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  atEnd(() => child.kill("SIGKILL"));
  await reply(child);
  const ask = async <Value>(request: VmAgentRequest) => {
    child.send(request);
    return (await reply(child)) as Value;
  };
  return {
    launch: (wanted) => ask({ does: "launch", wanted }),
    terminate: (vmId) => ask({ does: "terminate", vmId }),
    inventory: () => ask({ does: "inventory" }),
    kill: () =>
      new Promise((resolve) => {
        child.once("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
}

function reply(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error("the agent is gone"));
    child.once("exit", gone);
    child.once("message", (message: { value?: unknown; error?: { code?: string; message: string } }) => {
      child.off("exit", gone);
      if (message.error) reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
      else resolve(message.value);
    });
  });
}

/** Resolves with what the guest has written to its console, when this text is part of it. */
export async function written(serialLog: string, text: string): Promise<string> {
  await expect.poll(() => readFileSync(serialLog, "utf8"), { timeout: 240_000, interval: 200 }).toContain(text);
  return readFileSync(serialLog, "utf8").replaceAll("\r", "");
}
