// Runs the host's part of a preflight over the system's ssh. The remote command is fixed, and what it needs goes to its
// standard input: nothing that is given here is read by a shell on the host.

import { spawn } from "node:child_process";
import { HostPreflight, type HostPreflightRequest } from "@holdfast/contracts/preflight/host-report";
import { redact } from "@holdfast/kit/redact";
import { UsageError } from "@holdfast/kit/settings";

/** The node's certificate is readable for root only. A shell without a login may not have the command in its PATH. */
export const REMOTE_COMMAND = [
  'PATH="$PATH:/usr/local/bin"; as=""; [ "$(id -u)" = 0 ] || as="sudo -n"',
  "exec $as holdfast agent preflight --json --request -",
].join("; ");

const CONNECT_SECONDS = 5;
const MOST_OUTPUT = 1024 * 1024;

export function sshArguments({ host, user }: { host: string; user?: string | undefined }): string[] {
  // A name that begins with a dash would be an option.
  if (!/^[A-Za-z0-9_[][A-Za-z0-9_.:%[\]-]*$/.test(host))
    throw new UsageError(`--node-host is not a host: ${host}`);
  if (user !== undefined && !/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(user))
    throw new UsageError(`--node-user is not a user: ${user}`);
  return [
    ...["-o", "BatchMode=yes", "-o", `ConnectTimeout=${CONNECT_SECONDS}`, "-T"],
    ...(user === undefined ? [] : ["-l", user]),
    ...["--", host, REMOTE_COMMAND],
  ];
}

/** Rejects when the host cannot be reached, or has no such command. */
export async function askOverSsh(
  to: { host: string; user?: string | undefined },
  request: HostPreflightRequest,
  signal: AbortSignal,
): Promise<HostPreflight> {
  const child = spawn("ssh", sshArguments(to), { signal, stdio: ["pipe", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    if (stdout.length < MOST_OUTPUT) stdout += part;
  });
  child.stderr.setEncoding("utf8").on("data", (part: string) => {
    stderr = (stderr + part).slice(-2_000);
  });
  child.stdin.on("error", () => undefined).end(JSON.stringify(request));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  }).catch((error: Error) => {
    throw new Error(`SSH to ${to.host} did not end in time, or ssh is not installed: ${error.message}`);
  });
  const parsed = HostPreflight.safeParse(jsonIn(stdout));
  if (parsed.success) return parsed.data;
  const said = redact(stderr.trim().split("\n").at(-1) ?? "");
  throw new Error(`SSH to ${to.host} ended with ${code}${said ? `: ${said}` : " and without a report"}`);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
