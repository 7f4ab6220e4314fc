// holdfast image boot and check: on the host itself, without the server. The command of a node has them, too.

import { resolve } from "node:path";
import type { VmAccelerator, VmNetworkBackend } from "@holdfast/contracts/node/vm-host";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import type { Published } from "@holdfast/node-agent/vms/base-image/boot";
import type { ImageCheck } from "@holdfast/node-agent/vms/base-image/check";
import { DEFAULT_IMAGE_DIR, vmSettings } from "@holdfast/node-agent/vms/settings";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Refusal } from "../../failure.ts";
import { printResult } from "../../output.ts";

type BootOptions = {
  image: string;
  sshForward?: number;
  accel: VmAccelerator | "auto";
  network: VmNetworkBackend;
  networkIf?: string;
  headless?: boolean;
  dryRun?: boolean;
  cpus: number;
  memory: number;
};

/** Throws a Refusal while a lease uses the image. Absent: there is no server to ask. */
type LeaseCheck = (imageId: string) => Promise<void>;

/** Adds them to the noun `image`, of the server's command and of a node's. */
export function withHostCommands(image: Command, checkLeases?: LeaseCheck): Command {
  addBoot(image, checkLeases);
  addCheck(image);
  return image;
}

function addBoot(image: Command, checkLeases?: LeaseCheck): Command {
  return image
    .command("boot")
    .description("boot a base image on this host to customize it; works on a copy, and publishes it at shutdown")
    .requiredOption("--image <file>", "the file, or the id of an image in NODE_AGENT_BASE_IMAGE_DIR")
    .option("--ssh-forward <port>", "forward this port of 127.0.0.1 to SSH in the guest; network user only", port)
    .addOption(choice("--accel <name>", "accelerator", ["auto", "kvm", "nvmm", "tcg"], "auto"))
    .addOption(choice("--network <backend>", "network", ["user", "bridge", "tap"], "user"))
    .option("--network-if <interface>", "the bridge or tap; required for bridge and tap")
    .option("--headless", "no console on this terminal")
    .option("--dry-run", "check everything and print the command of QEMU, but do not boot")
    .option("--cpus <count>", "vCPUs of the guest", whole, 2)
    .option("--memory <mib>", "memory of the guest, in MiB", whole, 2048)
    .action((options: BootOptions) => boot(options, checkLeases));
}

function addCheck(image: Command): Command {
  return image
    .command("check")
    .description("test whether an image has what a guest needs: cloud-init, NoCloud, bash, Java, curl or fetch")
    .argument("<file>", "a qcow2 file on this host")
    .option("--json", "print JSON")
    .action(async (file: string, options: { json?: boolean }) => {
      const { checkImage } = await import("@holdfast/node-agent/vms/base-image/check");
      const checks = await checkImage(resolve(file));
      printResult(options, { file: resolve(file), checks }, () => checks.map(describeCheck).join("\n"));
      const failed = checks.filter(({ outcome }) => outcome === "failed");
      if (failed.length > 0)
        throw new Refusal("image_requirements_missing", {
          message: `${failed.length} of ${checks.length} checks failed.`,
          nextStep: "Each line says what to change in the image; `holdfast image boot` boots it for that.",
        });
      const unknown = checks.filter(({ outcome }) => outcome === "not_checked");
      if (unknown.length > 0)
        throw new Refusal("image_not_checked", {
          message: `${unknown.length} of ${checks.length} requirements could not be checked.`,
          nextStep: "Boot the image with `holdfast image boot --image <file>` and check them inside.",
        });
    });
}

const marks = { passed: "ok      ", failed: "MISSING ", not_checked: "UNKNOWN " } as const;
const describeCheck = ({ name, outcome, detail }: ImageCheck) => `${marks[outcome]} ${name.padEnd(10)} ${detail}`;

const choice = (flags: string, text: string, of: string[], by: string) =>
  new Option(flags, text).choices(of).default(by);

function whole(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError("A whole number is expected.");
  return Number(text);
}

function port(text: string): number {
  const value = whole(text);
  if (value > 65_535) throw new InvalidArgumentError("A port from 1 to 65535 is expected.");
  return value;
}

async function boot(options: BootOptions, checkLeases: LeaseCheck | undefined): Promise<void> {
  if (options.network !== "user" && options.networkIf === undefined)
    throw new UsageError(`--network ${options.network} needs --network-if <interface>.`);
  if (options.network !== "user" && options.sshForward !== undefined)
    throw new UsageError(
      "--ssh-forward works with --network user only. On other networks, connect to the guest's address.",
    );
  const { assertBootable, BootRefused, bootCommand, chooseAccelerator, customize, idOf } = await import(
    "@holdfast/node-agent/vms/base-image/boot"
  );
  const settings = readSettings(vmSettings, process.env);
  const overlays = settings.vmOverlayDir;
  const image = /[/]|[.]qcow2$/.test(options.image)
    ? resolve(options.image)
    : `${settings.vmImageDir ?? DEFAULT_IMAGE_DIR}/${options.image}.qcow2`;
  const request = {
    ...{ image, sshForward: options.sshForward, accelerator: options.accel, network: options.network },
    ...{ networkInterface: options.networkIf, headless: options.headless ?? false },
    ...{ vcpus: options.cpus, memoryMib: options.memory },
  };
  try {
    await assertBootable(image, { overlays });
    await checkLeases?.(idOf(image));
    const { accelerator, note } = await chooseAccelerator(options.accel, family());
    if (note) process.stderr.write(`${note}\n`);
    if (options.dryRun) {
      process.stdout.write(`${bootCommand(request, `<copy of ${image}>`, accelerator).map(quoted).join(" ")}\n`);
      return;
    }
    process.stderr.write(hints(options));
    const stop = new AbortController();
    const onSignal = () => stop.abort();
    for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, onSignal);
    const published = await customize(request, { overlays, accelerator, signal: stop.signal });
    process.stdout.write(`${describePublished(published)}\n`);
  } catch (error) {
    if (!(error instanceof BootRefused)) throw error;
    throw new Refusal("image_not_booted", { message: error.message, nextStep: error.nextStep });
  }
}

const family = () => (process.platform === ("dragonfly" as NodeJS.Platform) ? "dragonfly" : process.platform);

function hints({ headless, sshForward }: BootOptions): string {
  const ssh = sshForward === undefined ? "" : ` SSH: ssh -p ${sshForward} root@127.0.0.1.`;
  const console = headless ? "Ctrl-C asks the guest to shut down." : "Ctrl-A X switches the guest off.";
  return `The guest runs on a copy. Shut it down from inside to publish the copy.${ssh} ${console}\n`;
}

function describePublished({ path, id, sha256, as }: Published): string {
  if (as === "unchanged") return `Nothing was changed. ${path} has SHA-256 ${sha256}.`;
  const beside =
    as === "beside" ? ["The image was used or changed meanwhile, so this is a new one beside it."] : [];
  const retire = as === "beside" ? "" : `holdfast image retire ${id} && `;
  return [
    `Published ${path}`,
    `SHA-256 ${sha256}`,
    ...beside,
    `For leases to get it, run on the server: ${retire}holdfast image add ${id} --sha256 ${sha256}`,
  ].join("\n");
}

const quoted = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
