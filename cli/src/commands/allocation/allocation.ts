// holdfast allocation: OS users on nodes.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Client } from "@holdfast/contracts/client";
import {
  type Allocation,
  type AllocationStatus,
  createAllocation,
  getAllocation,
  listAllocations,
  releaseAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { listProjects } from "@holdfast/contracts/endpoints/projects";
import { removalInWords } from "@holdfast/contracts/words/allocations";
import { allocationStatusTitles } from "@holdfast/contracts/words/state-titles";
import { UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { allocationIdOf } from "../../client/find-allocation.ts";
import { findMember } from "../../client/find-member.ts";
import { findNode } from "../../client/find-node.ts";
import { everyPage } from "../../client/pages.ts";
import { exitCodes, Refusal } from "../../failure.ts";
import { localTime, nextPage, printResult, table } from "../../output.ts";
import { collected, wholeNumber } from "../options.ts";
import { stateOption } from "../state-option.ts";
import { addNotifications } from "./notifications.ts";
import { addRepair } from "./repair.ts";
import { addSharingCommands } from "./sharing.ts";
import { waitFor } from "./wait.ts";

type CreateOptions = ServerOptions & {
  node: string;
  user: string;
  sshKey?: string[];
  project?: string;
  owner?: string;
  wait: boolean;
};
type ListOptions = ServerOptions & {
  node?: string;
  project?: string;
  status?: AllocationStatus;
  mine?: boolean;
  owner?: string;
  limit: number;
  cursor?: string;
};

export function allocationCommand(): Command {
  const allocation = new Command("allocation").description("OS users on nodes");
  withServerOptions(allocation.command("create"))
    .description("create a user on a node and wait until it is ready")
    .requiredOption("--node <id or name>")
    .requiredOption("--user <name>", "name of the OS user")
    .option("--ssh-key <file>", "public key file for the user's authorized_keys; repeatable", collected)
    .option("--project <slug or id>", "default: the organization's oldest project")
    .option("--owner <email>", "the member who owns it (administrators only); default: you")
    .option("--no-wait", "do not wait for the node")
    .action(create);
  withServerOptions(allocation.command("release"))
    .description("release an allocation: close its terminals and remove its user")
    .argument("<id or user@node>")
    .option("--no-wait", "do not wait for the node")
    .action(async (wanted: string, options: ServerOptions & { wait: boolean }) => {
      const client = await connect(options);
      const allocation_id = await allocationIdOf(client, wanted);
      const asked = await client(releaseAllocation, { params: { allocation_id } });
      const ended = options.wait ? await waitFor(client, asked, { ...options, wanted: "released" }) : asked;
      printResult(options, ended, describeAllocation);
      if (ended.removal === "unconfirmed") process.exitCode = exitCodes.failed;
    });
  addRepair(allocation);
  withServerOptions(allocation.command("list"))
    .description("list the allocations you own, administer or were granted, newest first")
    .option("--node <id or name>", "only on this node")
    .option("--project <slug or id>", "only in this project")
    .addOption(stateOption("--status <status>", "by status", allocationStatusTitles))
    .option("--mine", "only allocations that you own")
    .option("--owner <email or none>", "only this member's allocations; none: without an active owner")
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(list);
  withServerOptions(allocation.command("show"))
    .description("show an allocation")
    .argument("<id or user@node>")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const allocation_id = await allocationIdOf(client, wanted);
      printResult(options, await client(getAllocation, { params: { allocation_id } }), describeAllocation);
    });
  addNotifications(allocation);
  addSharingCommands(allocation);
  return allocation;
}

async function create(options: CreateOptions): Promise<void> {
  const sshKeys = (options.sshKey ?? []).flatMap(readKeys);
  const client = await connect(options);
  const node = await findNode(client, options.node);
  const project = options.project === undefined ? undefined : await findProject(client, options.project);
  const owner = options.owner === undefined ? undefined : await findMember(client, options.owner);
  const wanted = { node_id: node.id, username: options.user, project_id: project?.id };
  const asked = await client(createAllocation, {
    body: { ...wanted, ssh_keys: sshKeys, owner_id: owner?.user_id },
    idempotencyKey: randomUUID(),
  });
  const ended = options.wait ? await waitFor(client, asked, { ...options, wanted: "active" }) : asked;
  printResult(options, ended, describeAllocation);
}

async function list(options: ListOptions): Promise<void> {
  const client = await connect(options);
  const node = options.node === undefined ? undefined : await findNode(client, options.node);
  const project = options.project === undefined ? undefined : await findProject(client, options.project);
  const { status, limit, cursor } = options;
  const owner = options.mine ? "me" : await ownerOf(client, options.owner);
  const query = { node_id: node?.id, project_id: project?.id, status, owner, limit, cursor };
  printResult(options, await client(listAllocations, { query }), ({ items, next_cursor }) => {
    if (items.length === 0) return "No allocation matches.";
    const rows = table(items, [
      { title: "id", of: (row) => row.id },
      { title: "user", of: (row) => row.username },
      { title: "node", of: (row) => row.node_name },
      { title: "status", of: statusOf },
      { title: "owner", of: ownerInWords },
      { title: "since", of: (row) => localTime(row.released_at ?? row.active_at ?? row.created_at) },
    ]);
    return rows + nextPage(items, next_cursor);
  });
}

async function ownerOf(client: Client, wanted: string | undefined): Promise<string | undefined> {
  return wanted === undefined || wanted === "none" ? wanted : (await findMember(client, wanted)).user_id;
}

function statusOf({ status, user_state, reason }: Allocation): string {
  const affected = user_state && user_state.state !== "normal" ? `, ${user_state.title.toLowerCase()}` : "";
  return allocationStatusTitles[status].title.toLowerCase() + affected + (reason ? ` (${reason.code})` : "");
}

function ownerInWords({ owner, access }: Allocation): string {
  if (!owner) return "none";
  const note = owner.active ? (access === "manage" ? "" : ` (your access: ${access})`) : " (inactive)";
  return owner.name + note;
}

function describeAllocation(allocation: Allocation): string {
  const { id, username, node_name, status, home, own_account, user_state, reason, removal } = allocation;
  const where = `${username} on ${node_name}`;
  const sentence: Record<AllocationStatus, string> = {
    requested: `User ${where} requested. The node has not confirmed it yet.`,
    active: `User ${where} is ready.${home ? ` Home: ${home}.` : ""}`,
    releasing: `Release of ${where} requested; the node has not confirmed the removal yet.`,
    released: removalInWords({ username, node_name, removal }),
    failed: `Allocation of ${where} failed.`,
  };
  const shared =
    own_account && status === "active"
      ? ["This is the agent's own account, which all allocations on the node share."]
      : [];
  const state =
    user_state && user_state.state !== "normal"
      ? [`${user_state.title} since ${localTime(user_state.since)}. ${user_state.message}`]
      : [];
  const why = reason ? [`${reason.message} (${reason.code})`, reason.next_step] : [];
  const owner = `Owner: ${ownerInWords(allocation)}`;
  return [sentence[status], ...shared, ...state, ...why, owner, `Allocation ${id}`].join("\n");
}

/** Blank lines and comments are allowed, as in an authorized_keys file. */
function readKeys(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(
      `--ssh-key ${path} cannot be read: ${(error as Error).message}. Give the file of a public key, such as ~/.ssh/id_ed25519.pub.`,
    );
  }
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text))
    throw new UsageError(
      `--ssh-key ${path} is a private key. Give the matching .pub file, and keep the private key secret.`,
    );
  const keys = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.trimStart().startsWith("#"));
  if (keys.length === 0) throw new UsageError(`--ssh-key ${path} contains no key.`);
  return keys;
}

async function findProject(client: Client, wanted: string): Promise<{ id: string }> {
  const all = await everyPage((cursor) => client(listProjects, { query: { cursor, limit: 200 } }));
  const found = all.find(({ id, slug }) => id === wanted.toLowerCase() || slug === wanted);
  if (found) return found;
  throw new Refusal("not_found", {
    message: `Project "${wanted}" not found in this organization.`,
    nextStep:
      all.length === 0
        ? "The organization has no projects yet."
        : `Projects: ${all.map(({ slug }) => slug).join(", ")}.`,
  });
}
