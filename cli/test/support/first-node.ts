// An installation whose own machine is its first node, and commands against it.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import { listNodes, type Node } from "@holdfast/contracts/endpoints/nodes";
import {
  type Environment,
  type Installation,
  type Outcome,
  openInstallation,
  type Started,
  until,
} from "../../../testkit/processes/holdfast.ts";

export type Failure = {
  code: string;
  message: string;
  next_step?: string;
  details?: Record<string, unknown>;
};

export type FirstNode = {
  installation: Installation;
  up: Started;
  node: Node;
  /** A directory for the test's own files. */
  scratch: string;
  /** The local operator, of the api as it runs now. For what is asked over and over: a command is a process each time. */
  operator(): Client;
  run(args: string[], env?: Record<string, string>): Promise<Outcome>;
  /** With --json: expects success, and one JSON value. */
  json<T>(args: string[]): Promise<T>;
  /** With --json: expects a refusal, and gives what a script is told. */
  failure(args: string[]): Promise<Failure & { exit: number | null }>;
  cleanUp(): Promise<void>;
};

/** Answers when the node is online. */
export async function openFirstNode(env: Environment = {}): Promise<FirstNode> {
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-nodes-"));
  const installation = openInstallation();
  const { run } = installation;
  const json = async <T>(args: string[]): Promise<T> => {
    const { code, stdout, stderr } = await run([...args, "--json"]);
    if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}:\n${stderr}`);
    return JSON.parse(stdout) as T;
  };
  const up = installation.up(env);
  await up.ready;
  const token = readFileSync(join(installation.dataDir, "operator-token"), "utf8").trim();
  const operator = () => createClient({ baseUrl: installation.upFile().api_url ?? "", token });
  const online: Node[] = [];
  await until(async () => {
    const { items } = await operator()(listNodes, {});
    online.push(...items.filter(({ connection }) => connection === "online"));
    return online.length > 0;
  });
  const [node] = online;
  if (!node) throw new Error("unreachable: a node is online");
  return {
    installation,
    up,
    node,
    scratch,
    operator,
    run,
    json,
    async failure(args) {
      const { code, stdout, stderr } = await run([...args, "--json"]);
      if (code === 0) throw new Error(`holdfast ${args.join(" ")} succeeded:\n${stdout}`);
      return { exit: code, ...errorOf({ stderr }) };
    },
    async cleanUp() {
      await installation.cleanUp();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

export function errorOf({ stderr }: Pick<Outcome, "stderr">): Failure {
  return (JSON.parse(stderr) as { error: Failure }).error;
}
