// holdfast secret: named secrets of an organization, and `rewrap`, which replaces the key around everything that is sealed.

import type { Client } from "@holdfast/contracts/client";
import {
  deleteSecret,
  getSecret,
  listSecrets,
  rotateSecret,
  type Secret,
  type SecretUse,
  setSecret,
} from "@holdfast/contracts/endpoints/secrets";
import { UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";
import { agreed } from "../../prompt.ts";
import { addRewrap } from "./rewrap.ts";
import { readValue, refusingValues } from "./value.ts";

export function secretCommand(): Command {
  const secret = new Command("secret").description("named secrets that steps may get; values are never shown");
  addSet(secret);
  addList(secret);
  addShow(secret);
  addRotate(secret);
  addDelete(secret);
  addRewrap(secret);
  return secret;
}

type SetOptions = ServerOptions & { membersMayUse?: boolean; adminsOnly?: boolean };

function addSet(secret: Command): void {
  refusingValues(withServerOptions(secret.command("set")))
    .description("create a secret, or replace its value; reads the value from standard input, or asks for it")
    .argument("<name>")
    .option("--members-may-use", "steps that a member requests may use it, too")
    .option("--admins-only", "only steps of owners and admins may use it")
    .action(async (name: string, options: SetOptions) => {
      if (options.membersMayUse && options.adminsOnly)
        throw new UsageError("Use only one of --members-may-use and --admins-only.");
      const client = await connect(options);
      const value = await readValue(name);
      const members_may_use = options.membersMayUse ? true : options.adminsOnly ? false : undefined;
      const set = await client(setSecret, { body: { name, value, members_may_use } });
      printResult(options, set, () =>
        set.version === 1
          ? `Secret ${name} created. Steps get it with "secretName": "${name}" in their dispatch.`
          : `Secret ${name} replaced: it is version ${set.version} now. Steps that were dispatched before keep the value they were given.`,
      );
    });
}

function addList(secret: Command): void {
  withServerOptions(secret.command("list"))
    .description("list secrets by name, without values")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      const { items } = await client(listSecrets, {});
      printResult(options, { items }, () =>
        items.length === 0
          ? "No secrets yet. Create one: `holdfast secret set <name>`."
          : table(items, [
              { title: "name", of: (row) => row.name },
              { title: "version", of: (row) => String(row.version) },
              { title: "for steps of", of: usersOf },
              { title: "changed", of: (row) => localTime(row.changed_at) },
              { title: "changed by", of: (row) => row.changed_by },
              { title: "uses", of: (row) => String(row.uses) },
              { title: "last used", of: (row) => localTime(row.last_used_at) ?? "never" },
            ]),
      );
    });
}

function addShow(secret: Command): void {
  withServerOptions(secret.command("show"))
    .description("show a secret and what used it, without its value")
    .argument("<name>")
    .action(async (name: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id: secret_id } = await find(client, name);
      const shown = await client(getSecret, { params: { secret_id } });
      printResult(options, shown, () => describe(shown));
    });
}

function addRotate(secret: Command): void {
  refusingValues(withServerOptions(secret.command("rotate")))
    .description(
      "replace the value of a secret that exists; with --key-only keep the value and encrypt it with a new data key",
    )
    .argument("<name>")
    .option("--key-only", "a new data key for the same value")
    .action(async (name: string, options: ServerOptions & { keyOnly?: boolean }) => {
      const client = await connect(options);
      const { id: secret_id } = await find(client, name);
      const value = options.keyOnly ? undefined : await readValue(name);
      const rotated = await client(rotateSecret, { params: { secret_id }, body: { value } });
      printResult(options, rotated, () =>
        options.keyOnly
          ? `Secret ${name} is encrypted with a new data key. Its value and version (${rotated.version}) are the same.`
          : `Secret ${name} replaced: it is version ${rotated.version} now. Steps that were dispatched before keep the value they were given.`,
      );
    });
}

function addDelete(secret: Command): void {
  withServerOptions(secret.command("delete"))
    .description("delete a secret; shows what used it and asks first")
    .argument("<name>")
    .option("--yes", "do not ask, also if executions used it")
    .action(async (name: string, options: ServerOptions & { yes?: boolean }) => {
      const client = await connect(options);
      const { id: secret_id } = await find(client, name);
      if (!options.yes) {
        const shown = await client(getSecret, { params: { secret_id } });
        process.stderr.write(`${describe(shown)}\n\n`);
        if (!(await agreed(`Delete the secret ${name}? This cannot be undone.`))) {
          throw new UsageError("Nothing was deleted.");
        }
      }
      await client(deleteSecret, { params: { secret_id }, query: { force: "true" } });
      printResult(options, { id: secret_id, name, deleted: true }, () => `Secret ${name} deleted.`);
    });
}

async function find(client: Client, wanted: string): Promise<Secret> {
  const { items } = await client(listSecrets, {});
  const found = items.find(({ name, id }) => name === wanted || id === wanted);
  if (found) return found;
  throw new UsageError(
    `Secret "${wanted}" not found, or you have no access. List secrets with \`holdfast secret list\`.`,
  );
}

function usersOf({ members_may_use }: Secret): string {
  return members_may_use ? "all members" : "owners and admins";
}

function describe(secret: Secret & { used_by: SecretUse }): string {
  const { workflows, executions } = secret.used_by;
  const facts = [
    `${secret.name}: version ${secret.version}, set by ${secret.changed_by} at ${localTime(secret.changed_at)}`,
    `  encrypted with its data key since ${localTime(secret.key_changed_at)}`,
    `  for steps of ${usersOf(secret)}`,
    `  id ${secret.id}`,
  ].join("\n");
  if (secret.uses === 0) return `${facts}\n\nNo kept execution used it.`;
  return [
    facts,
    "",
    `Used by ${secret.uses} executions, last at ${localTime(secret.last_used_at)}:`,
    table(workflows, [
      { title: "workflow", of: (row) => row.workflow_id },
      { title: "uses", of: (row) => String(row.uses) },
      { title: "last used", of: (row) => localTime(row.last_used_at) },
    ]),
    "",
    table(executions, [
      { title: "request", of: (row) => row.request_id },
      { title: "version", of: (row) => String(row.version) },
      { title: "state", of: (row) => row.status },
      { title: "at", of: (row) => localTime(row.used_at) },
    ]),
  ].join("\n");
}
