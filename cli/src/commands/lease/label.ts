// holdfast lease label: what requests with a label get.

import { listLeaseLabels, removeLeaseLabel, setLeaseLabel } from "@holdfast/contracts/endpoints/leases";
import { type VmAccelerator, vmAccelerators } from "@holdfast/contracts/node/vm-host";
import { type VmProfile, vmProfiles } from "@holdfast/contracts/vm/profiles";
import { type Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { labelRows } from "./describe.ts";

type SetOptions = ServerOptions & {
  image: string;
  profile: VmProfile;
  arch?: string;
  accelerator?: VmAccelerator;
  max?: number;
};

export function addLabels(lease: Command): void {
  const label = lease.command("label").description("what requests with a label get");
  withServerOptions(label.command("list"))
    .description("list labels")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listLeaseLabels, {}), ({ items }) =>
        items.length === 0
          ? "No labels. Create one: holdfast lease label set <label> --image <id>"
          : table(items, labelRows),
      );
    });
  withServerOptions(label.command("set"))
    .description("create or change a label; leases that exist keep what they have")
    .argument("<label>")
    .requiredOption("--image <id>", "the base image")
    .addOption(new Option("--profile <profile>", "the size").choices(vmProfiles).default("small"))
    .option("--arch <arch>", "the architecture of the host, such as x64")
    .addOption(new Option("--accelerator <name>", "only on hosts where it works").choices(vmAccelerators))
    .option("--max <count>", "how many VMs with the label exist at a time", wholeNumber({ min: 0, max: 10_000 }))
    .action(async (name: string, options: SetOptions) => {
      const client = await connect(options);
      const { image: image_id, profile, arch = null, accelerator = null, max: max_leases = null } = options;
      const body = { label: name, image_id, profile, arch, accelerator, max_leases };
      printResult(options, await client(setLeaseLabel, { body }), (one) => table([one], labelRows));
    });
  withServerOptions(label.command("remove"))
    .description("remove a label")
    .argument("<label>")
    .action(async (name: string, options: ServerOptions) => {
      const client = await connect(options);
      await client(removeLeaseLabel, { params: { label: name } });
      printResult(options, { label: name }, () => `Label ${name} removed.`);
    });
}
