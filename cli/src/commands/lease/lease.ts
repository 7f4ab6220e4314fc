// holdfast lease: VMs on hosts: create, list, show, explain, terminate.

import type { Client } from "@holdfast/contracts/client";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import {
  createLease,
  endedLeaseStates,
  explainLease,
  getLease,
  type LeaseState,
  listLeases,
  terminateLease,
} from "@holdfast/contracts/endpoints/leases";
import { type VmAccelerator, vmAccelerators } from "@holdfast/contracts/node/vm-host";
import { type VmProfile, vmProfiles } from "@holdfast/contracts/vm/profiles";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { Command, Option } from "commander";
import { changesOf } from "../../client/changes.ts";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { harmless, nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { stateOption } from "../state-option.ts";
import { describeExplanation, describeLease, leaseRows, stateOf } from "./describe.ts";
import { addLabels } from "./label.ts";
import { addLog } from "./log.ts";

type Shown = AnswerOf<typeof getLease>;

type CreateOptions = ServerOptions & {
  label?: string;
  image?: string;
  profile?: VmProfile;
  arch?: string;
  accelerator?: VmAccelerator;
  ttl?: number;
  waitSeconds?: number;
  wait?: boolean;
};
type ListOptions = ServerOptions & { status?: LeaseState; live?: boolean; limit: number; cursor?: string };

export function leaseCommand(): Command {
  const lease = new Command("lease").description("VMs on hosts");
  withServerOptions(lease.command("create"))
    .description("request a VM; it waits until a host has room for it")
    .option("--label <label>", "what the VM is for: fills in what is not given here")
    .option("--image <id>", "the base image")
    .addOption(new Option("--profile <profile>", "the size").choices(vmProfiles))
    .option("--arch <arch>", "the architecture of the host, such as x64")
    .addOption(new Option("--accelerator <name>", "only on hosts where it works").choices(vmAccelerators))
    .option("--ttl <seconds>", "the VM is terminated after this time", wholeNumber({ min: 60, max: 604_800 }))
    .option(
      "--wait-seconds <seconds>",
      "give up without a host after this time",
      wholeNumber({ min: 1, max: 86_400 }),
    )
    .option("--wait", "wait until the guest is connected or the lease has ended")
    .action(create);
  withServerOptions(lease.command("list"))
    .description("list leases, newest first")
    .addOption(stateOption("--status <status>", "by state", leaseStateTitles))
    .option("--live", "only those that have not ended")
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(async (options: ListOptions) => {
      const client = await connect(options);
      const { status, live, limit, cursor } = options;
      const page = await client(listLeases, { query: { status, live: live ? "true" : undefined, limit, cursor } });
      printResult(options, page, ({ items, next_cursor }) =>
        items.length === 0 ? "No lease matches." : table(items, leaseRows) + nextPage(items, next_cursor),
      );
    });
  withServerOptions(lease.command("show"))
    .description("show a lease with its timeline")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getLease, { params: { lease_id: id } }), describeLease);
    });
  withServerOptions(lease.command("explain"))
    .description("say for each host why it was not chosen")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(explainLease, { params: { lease_id: id } }), describeExplanation);
    });
  withServerOptions(lease.command("terminate"))
    .description("stop the VM of a lease and remove everything of it from the host")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const ended = await client(terminateLease, { params: { lease_id: id } });
      printResult(options, ended, (one) => {
        if (endedLeaseStates.has(one.status)) return `Lease ${id} has ended: ${stateOf(one)}.`;
        return `Lease ${id} is ${stateOf(one)}; ${one.host_name} has not confirmed it yet. \`holdfast lease show ${id}\` shows when it has.`;
      });
    });
  addLog(lease);
  addLabels(lease);
  return lease;
}

async function create(options: CreateOptions): Promise<void> {
  const client = await connect(options);
  const {
    label,
    image: image_id,
    profile,
    arch,
    accelerator,
    ttl: ttl_seconds,
    waitSeconds: wait_seconds,
  } = options;
  const body = { label, image_id, profile, arch, accelerator, ttl_seconds, wait_seconds };
  const made = await client(createLease, { body });
  const created = await client(getLease, { params: { lease_id: made.id } });
  const shown = options.wait ? await whenConnected(client, created, options) : created;
  printResult(options, shown, describeLease);
  if (options.wait && !["connected", "running"].includes(shown.status)) process.exitCode = 1;
}

/** Or when it has ended. The states on the way are shown, because a boot takes seconds to minutes. */
export async function whenConnected(
  client: Client,
  created: Shown,
  { json, signal }: Pick<ServerOptions, "json"> & { signal?: AbortSignal },
): Promise<Shown> {
  const before = new Set<LeaseState>(["requested", "provisioning", "booting"]);
  let latest = created;
  const show = () => {
    if (!json) process.stderr.write(`${harmless(`Lease ${latest.id}: ${stateOf(latest)}`)}\n`);
  };
  show();
  const changes = changesOf(created, {
    read: (query, deadline) => client(getLease, { params: { lease_id: created.id }, query, signal: deadline }),
    ended: ({ status }) => !before.has(status),
    signal,
  });
  for await (const next of changes) {
    const isNew = next.status !== latest.status;
    latest = next;
    if (isNew) show();
  }
  return latest;
}
