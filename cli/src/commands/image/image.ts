// holdfast image: the catalogue of base images: list, add, prewarm, retire; and, on a host, boot and check.

import { addImage, listImages, retireImage, type VmImageEntry } from "@holdfast/contracts/endpoints/images";
import { hostImageStateTitles } from "@holdfast/contracts/words/vm-titles";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { Refusal } from "../../failure.ts";
import { type Column, printResult, table } from "../../output.ts";
import { withHostCommands } from "./on-host.ts";
import { addPrewarm } from "./prewarm.ts";

const imageRows: Column<VmImageEntry>[] = [
  { title: "image", of: (row) => row.id },
  { title: "state", of: (row) => (row.retired_at ? "retired" : "active") },
  { title: "source", of: (row) => row.url ?? "put on hosts by hand" },
  { title: "sha256", of: (row) => `${row.sha256.slice(0, 12)}…` },
  { title: "leases", of: (row) => String(row.leases) },
  { title: "labels", of: (row) => row.labels.join(", ") || null },
  {
    title: "hosts",
    of: (row) =>
      row.hosts
        .map(({ name, state, percent }) => {
          const done = percent === null ? "" : `, ${percent} %`;
          return state === "ready" ? name : `${name} (${hostImageStateTitles[state].title.toLowerCase()}${done})`;
        })
        .join(", ") || null,
  },
];

/** Where no server is configured or it does not respond, the image can be customized all the same: leases are pinned by digest. */
async function refuseLeased(id: string): Promise<void> {
  let images: VmImageEntry[];
  try {
    images = (await (await connect({}))(listImages, {})).items;
  } catch {
    process.stderr.write("Leases were not checked: no server was reached from here.\n");
    return;
  }
  const used = images.find((one) => one.id === id && one.leases > 0);
  if (used)
    throw new Refusal("image_in_use", {
      message: `${used.leases} leases use the image ${id}.`,
      nextStep:
        "Wait until they have ended (`holdfast lease list`), or boot a copy of the file under another name.",
    });
}

function describeRetired({ id, hosts }: VmImageEntry): string {
  const fetched = hosts.filter((host) => host.fetched).map(({ name }) => name);
  const others = hosts.filter((host) => !host.fetched).map(({ name }) => name);
  return [
    `Image ${id} is retired.`,
    ...(fetched.length === 0 ? [] : [`Hosts that fetched it remove their file: ${fetched.join(", ")}.`]),
    ...(others.length === 0 ? [] : [`Its file stays on ${others.join(", ")}, where somebody put it.`]),
  ].join("\n");
}

export function imageCommand(): Command {
  const image = new Command("image").description("base images of VMs");
  withServerOptions(image.command("list"))
    .description("list images, and which hosts have them")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listImages, {}), ({ items, unlisted }) => {
        const others = unlisted.map(({ id, host_name }) => `  ${id} on ${host_name}: holdfast image add ${id}`);
        const failed = items.flatMap(({ id, hosts }) =>
          hosts.flatMap(({ name, message }) => (message === null ? [] : `  ${id} on ${name}: ${message}`)),
        );
        return [
          items.length === 0 ? "The catalogue is empty." : table(items, imageRows),
          ...(failed.length === 0 ? [] : ["", "Not fetched:", ...failed]),
          ...(others.length === 0 ? [] : ["", "On hosts, and not in the catalogue:", ...others]),
        ].join("\n");
      });
    });
  withServerOptions(image.command("add"))
    .description("add an image to the catalogue: one that hosts have, or one that they fetch from a URL")
    .argument("<id>", "the file on hosts is NODE_AGENT_BASE_IMAGE_DIR/<id>.qcow2")
    .option("--sha256 <digest>", "by default the one that hosts report, if they all report the same")
    .option(
      "--url <url>",
      "hosts fetch the file from there, if their HOLDFAST_VM_IMAGE_SOURCES allows it; needs --sha256",
    )
    .action(async (id: string, options: ServerOptions & { sha256?: string; url?: string }) => {
      const client = await connect(options);
      const added = await client(addImage, { body: { id, sha256: options.sha256, url: options.url } });
      printResult(options, added, (one) => table([one], imageRows));
    });
  withServerOptions(image.command("retire"))
    .description("give an image to no new lease; refused while leases or labels use it")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const retired = await client(retireImage, { params: { image_id: id } });
      printResult(options, retired, describeRetired);
    });
  addPrewarm(image);
  withHostCommands(image, refuseLeased);
  return image;
}
