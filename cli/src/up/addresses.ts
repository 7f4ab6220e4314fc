// Where people and programs reach what runs: addresses, and the ssh line that brings the page of a
// machine without a screen to the browser in front of you.

import { hostname, userInfo } from "node:os";
import type { Environment } from "@holdfast/kit/settings";
import { userName } from "../home.ts";

export function urlOf(listener: { bind: string; port: number; tls: boolean }): string {
  return `${listener.tls ? "https" : "http"}://${hostOf(listener.bind)}:${listener.port}`;
}

/** How this machine reaches a listener on that address. */
function hostOf(bind: string): string {
  if (bind === "0.0.0.0" || bind === "::") return "127.0.0.1";
  return bind.includes(":") ? `[${bind}]` : bind;
}

/** A machine reached by ssh, or one without a screen; under WSL the browser is next door. */
export function looksRemote(env: Environment): boolean {
  if (env["SSH_CONNECTION"]) return true;
  return !env["DISPLAY"] && !env["WAYLAND_DISPLAY"] && !env["WSL_DISTRO_NAME"];
}

export function sshLine(
  listeners: { bind: string; port: number }[],
  env: Environment,
  system: () => { username: string } = userInfo,
): string {
  // "client-address client-port server-address server-port"
  const [, , address, port] = (env["SSH_CONNECTION"] ?? "").split(" ");
  const forwards = listeners.map((one) => `-L ${quoted(`${one.port}:${hostOf(one.bind)}:${one.port}`)}`);
  const otherPort = port && port !== "22" ? [`-p ${port}`] : [];
  const user = env["SUDO_USER"] ?? userName(system) ?? "YOU";
  return ["ssh", ...forwards, ...otherPort, `${user}@${address || hostname()}`].join(" ");
}

/** zsh takes the brackets of an IPv6 address for a pattern. */
function quoted(word: string): string {
  return word.includes("[") ? `'${word}'` : word;
}
