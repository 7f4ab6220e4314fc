// Tests what a base image must have so that a guest of it comes up as a Jenkins agent by itself: cloud-init that finds its NoCloud seed,
// bash, Java, curl or fetch. It says which of that could not be checked; it never guesses.

import { qemuDriver } from "../../drivers/qemu/qemu-driver.ts";
import { type GuestFiles, withGuestFiles } from "./guest-files.ts";

export type ImageCheck = {
  name: "image" | "cloud_init" | "nocloud" | "bash" | "java" | "download";
  outcome: "passed" | "failed" | "not_checked";
  /** What was found, and for a failure what to do. */
  detail: string;
};

const path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const IN_GUEST = "Boot it with `holdfast image boot --image <file>` and check inside.";

export async function checkImage(image: string): Promise<ImageCheck[]> {
  const { problem } = await qemuDriver.inspectImage(image).catch((error: Error) => ({ problem: error.message }));
  if (problem !== undefined)
    return [
      ...[
        { name: "image", outcome: "failed", detail: `${problem}. Flatten it: qemu-img convert -O qcow2` } as const,
      ],
      ...notChecked("the image cannot be read"),
    ];
  const usable: ImageCheck = { name: "image", outcome: "passed", detail: "a complete, independent qcow2 image" };
  const checked = await withGuestFiles(image, async (files) => [
    ...[await cloudInit(files), await noCloud(files)],
    await program(files, "bash", ["bash"], "Install bash in the image (/usr/local/bin/bash on DragonFlyBSD)."),
    await program(files, "java", ["java"], "Install a Java runtime in the image, so that `java` is in PATH."),
    await program(files, "download", ["curl", "fetch"], "Install curl in the image: it downloads agent.jar."),
  ]);
  return [usable, ...("result" in checked ? checked.result : notChecked(`${checked.unreadable}. ${IN_GUEST}`))];
}

function notChecked(why: string): ImageCheck[] {
  return (["cloud_init", "nocloud", "bash", "java", "download"] as const).map((name) => ({
    ...{ name, outcome: "not_checked", detail: why },
  }));
}

async function findProgram(files: GuestFiles, names: readonly string[]): Promise<string | undefined> {
  for (const name of names)
    for (const directory of path) {
      const found = await files.find(`${directory}/${name}`);
      if (found?.executable) return `${directory}/${name}`;
    }
  return undefined;
}

async function program(
  files: GuestFiles,
  name: ImageCheck["name"],
  names: readonly string[],
  fix: string,
): Promise<ImageCheck> {
  const found = await findProgram(files, names);
  if (found) return { name, outcome: "passed", detail: found };
  return { name, outcome: "failed", detail: `${names.join(" or ")} is not in PATH. ${fix}` };
}

async function cloudInit(files: GuestFiles): Promise<ImageCheck> {
  const name = "cloud_init";
  const failed = (detail: string): ImageCheck => ({ name, outcome: "failed", detail });
  const found = await findProgram(files, ["cloud-init"]);
  if (!found) return failed("cloud-init is not in PATH. Install it in the image and enable it.");
  if (await files.find("/etc/cloud/cloud-init.disabled"))
    return failed("/etc/cloud/cloud-init.disabled exists. Remove that file in the image.");
  for (const unit of ["cloud-init.target", "cloud-init.service", "cloud-init-main.service", "cloud-final.service"])
    if ((await linkOf(files, `/etc/systemd/system/${unit}`)) === "/dev/null")
      return failed(`The unit ${unit} is masked. Run \`systemctl unmask ${unit}\` in the image.`);
  for (const file of ["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/etc/default/grub"])
    if (/^[^#]*\bcloud-init=disabled\b/m.test((await files.read(file)) ?? ""))
      return failed(`${file} has cloud-init=disabled. Remove it from the kernel's command line.`);
  return { name, outcome: "passed", detail: `${found}, and nothing disables it` };
}

/** A link to /dev/null leads to nothing in an image, where /dev is empty. */
async function linkOf(files: GuestFiles, file: string): Promise<string | undefined> {
  const names = await files.list(file.slice(0, file.lastIndexOf("/")));
  if (!names.includes(file.slice(file.lastIndexOf("/") + 1))) return undefined;
  return (await files.find(file))?.path ?? "/dev/null";
}

/** The last file that says anything decides, as in cloud-init itself. */
async function noCloud(files: GuestFiles): Promise<ImageCheck> {
  const name = "nocloud";
  const directory = "/etc/cloud/cloud.cfg.d";
  const names = (await files.list(directory)).filter((one) => one.endsWith(".cfg")).sort();
  let decided: { file: string; list: string[] } | undefined;
  for (const file of ["/etc/cloud/cloud.cfg", ...names.map((one) => `${directory}/${one}`)]) {
    const list = datasources((await files.read(file)) ?? "");
    if (list) decided = { file, list };
  }
  if (!decided)
    return { name, outcome: "passed", detail: "no file sets datasource_list: NoCloud is one of the defaults" };
  const { file, list } = decided;
  if (list.includes("NoCloud"))
    return { name, outcome: "passed", detail: `${file}: datasource_list: [ ${list.join(", ")} ]` };
  return {
    ...{ name, outcome: "failed" },
    detail:
      `${file} leaves NoCloud out: [ ${list.join(", ")} ]. ` +
      "Run deploy/apply-cloud-init-nocloud-fix.sh in the image and reboot it.",
  };
}

/** In either form of a YAML list. Undefined: the file does not set it. */
export function datasources(text: string): string[] | undefined {
  const inline = /^datasource_list:\s*\[([^\]]*)\]/m.exec(text)?.[1];
  if (inline !== undefined) return inline.split(",").map(plain).filter(Boolean);
  const block = /^datasource_list:[ \t]*(?:#.*)?\n((?:[ \t]*-[^\n]*(?:\n|$)|[ \t]*#[^\n]*\n)+)/m.exec(text)?.[1];
  return block
    ?.split("\n")
    .flatMap((line) => /^[ \t]*-(.*)$/.exec(line)?.[1] ?? [])
    .map(plain);
}

const plain = (text: string) =>
  text
    .replace(/#.*$/, "")
    .trim()
    .replaceAll(/^["']|["']$/g, "");
