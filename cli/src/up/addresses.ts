// Where people and programs reach what runs: addresses, and the ssh line that brings the page of a
// machine without a screen to the browser in front of you.

import { hostname, userInfo } from "node:os";
import type { Environment } from "@holdfast/kit/settings";

export function urlOf(listener: { bind: string; port: number; tls: boolean }): string {
  const everywhere = listener.bind === "0.0.0.0" || listener.bind === "::";
  const host = everywhere ? "127.0.0.1" : listener.bind.includes(":") ? `[${listener.bind}]` : listener.bind;
  return `${listener.tls ? "https" : "http"}://${host}:${listener.port}`;
}

/** A machine reached by ssh, or one without a screen; under WSL the browser is next door. */
export function looksRemote(env: Environment): boolean {
  if (env["SSH_CONNECTION"]) return true;
  return !env["DISPLAY"] && !env["WAYLAND_DISPLAY"] && !env["WSL_DISTRO_NAME"];
}

export function sshLine(ports: number[], env: Environment): string {
  // "client-address client-port server-address server-port"
  const [, , address, port] = (env["SSH_CONNECTION"] ?? "").split(" ");
  const forwards = ports.map((one) => `-L ${one}:127.0.0.1:${one}`);
  const otherPort = port && port !== "22" ? [`-p ${port}`] : [];
  const user = env["SUDO_USER"] ?? userInfo().username;
  return ["ssh", ...forwards, ...otherPort, `${user}@${address || hostname()}`].join(" ");
}
