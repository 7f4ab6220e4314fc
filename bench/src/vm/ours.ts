// A whole installation whose only node is a VM host with the small guest, and leases on it, as a program requests them.

import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { type Client, createClient } from "@holdfast/contracts/client";
import { getHost, listHosts } from "@holdfast/contracts/endpoints/hosts";
import { addImage } from "@holdfast/contracts/endpoints/images";
import { createLease, endedLeaseStates, getLease, terminateLease } from "@holdfast/contracts/endpoints/leases";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { removeAllVms } from "@holdfast/node-agent/vms/remove-all";
import { smallGuest } from "../../../testkit/guests/small-guest.ts";
import { startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";

export const PROFILE = "tiny";
const IMAGE = "small";
/** The same file under another name, of which one VM is always booted ahead. */
const WARM_IMAGE = "ahead";
const WAIT_SECONDS = 20;

export type VmInstallation = {
  hostTag: string;
  image: string;
  directories: string[];
  /** Resolves when the guest has connected; ended by `terminate`. */
  lease(): Promise<string>;
  /** The same with a VM that was booted ahead; it has to be there. */
  warmLease(): Promise<string>;
  /** Resolves when a VM that was booted ahead waits. */
  warmed(): Promise<void>;
  /** Resolves when the host has confirmed that nothing is left of it. */
  terminate(leaseId: string): Promise<void>;
};

export async function startVmInstallation(
  lab: Lab,
  settings: Record<string, string> = {},
): Promise<VmInstallation> {
  const place = lab.directory();
  const [images, seeds, overlays] = ["base", "seeds", "overlays"].map((name) => join(place, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [images, seeds, overlays]) mkdirSync(path);
  const image = join(images, `${IMAGE}.qcow2`);
  copyFileSync(smallGuest(), image);
  copyFileSync(image, join(images, `${WARM_IMAGE}.qcow2`));
  const dataDirectory = join(place, "data");
  const { apiUrl } = await startHoldfast(lab, {
    dataDirectory,
    settings: {
      ...{ HOLDFAST_VM_HOST: "on", HOLDFAST_VM_ACCELERATOR: "tcg", HOLDFAST_VM_CPUS: "16" },
      ...{ HOLDFAST_VM_BASE_IMAGE_DIR: images, HOLDFAST_VM_CLOUD_INIT_DIR: seeds },
      ...{ HOLDFAST_VM_OVERLAY_DIR: overlays, HOLDFAST_VM_WARM: `${WARM_IMAGE}:${PROFILE}=1` },
      ...settings,
    },
  });
  const tagFile = tagFileBelow(dataDirectory);
  // The VM that waits outlives the agent.
  lab.onClose(async () => void (await removeAllVms(dirname(tagFile))));
  const token = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const signedIn = createClient({ baseUrl: apiUrl, token });
  const orgId = (await signedIn(getMe, {})).organizations[0]?.id;
  const client = createClient({ baseUrl: apiUrl, token, ...(orgId === undefined ? {} : { orgId }) });
  for (const id of [IMAGE, WARM_IMAGE]) await publishImage(client, id);
  return {
    ...{ hostTag: tagIn(tagFile), image, directories: [seeds, overlays] },
    lease: () => connectedLease(client, IMAGE),
    warmLease: () => connectedLease(client, WARM_IMAGE),
    warmed: () => warmVm(client),
    terminate: (leaseId) => terminated(client, leaseId),
  };
}

/** Resolves when a host can launch it: the digest was computed, and the boot probe is over. */
async function publishImage(client: Client, image: string): Promise<void> {
  for (;;) {
    const [host] = (await client(listHosts, {})).items;
    const found = host && (await client(getHost, { params: { host_id: host.id } }));
    const sha256 = found?.images.find(({ id }) => id === image)?.sha256;
    if (found?.schedulable && sha256) {
      await client(addImage, { body: { id: image, sha256 } });
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function warmVm(client: Client): Promise<void> {
  while (!(await client(listHosts, {})).items.some(({ warm_vms }) => warm_vms.length > 0))
    await new Promise((resolve) => setTimeout(resolve, 100));
}

async function connectedLease(client: Client, image: string): Promise<string> {
  const { id } = await client(createLease, { body: { image_id: image, profile: PROFILE } });
  for (let revision: number | undefined; ; ) {
    const query = { wait_seconds: WAIT_SECONDS, revision };
    const lease = await client(getLease, { params: { lease_id: id }, query });
    if (lease.status === "connected") return id;
    if (endedLeaseStates.has(lease.status) || lease.status === "terminating")
      throw new Error(`the lease ${id} is ${lease.status}: ${lease.reason?.message ?? ""}`);
    revision = lease.revision;
  }
}

async function terminated(client: Client, leaseId: string): Promise<void> {
  const params = { lease_id: leaseId };
  let lease = await client(terminateLease, { params });
  while (!endedLeaseStates.has(lease.status)) {
    const query = { wait_seconds: WAIT_SECONDS, revision: lease.revision };
    lease = await client(getLease, { params, query });
  }
}

/** In the state directory of the agent. */
function tagFileBelow(directory: string): string {
  const folders = readdirSync(directory, { withFileTypes: true, recursive: true }).filter((entry) =>
    entry.isDirectory(),
  );
  const found = folders.map(({ parentPath, name }) => join(parentPath, name, "vm-host.json")).find(existsSync);
  if (!found) throw new Error("the agent has no host tag");
  return found;
}

function tagIn(file: string): string {
  return (JSON.parse(readFileSync(file, "utf8")) as { tag: string }).tag;
}
