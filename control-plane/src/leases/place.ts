// Chooses the host of a lease, and says for each other host why it was not chosen. Pure: it knows hosts as they were read; the
// statement that places checks the choice again.

import type { HostNotChosen, HostRefusal } from "@holdfast/contracts/endpoints/leases";
import type { VmAccelerator, VmImage, WarmVm } from "@holdfast/contracts/node/vm-host";
import { isAllowedImageUrl } from "@holdfast/contracts/vm/image-sources";
import type { Freshness } from "../nodes/presence/freshness.ts";

export type Share = { vcpus: number; memoryMib: number; diskMib: number };

export type HostView = {
  id: string;
  name: string;
  /** `active`, and otherwise what keeps it from getting tasks. */
  standing: string;
  enabled: boolean;
  freshness: Freshness;
  arch: string;
  /** Null: the boot probe has not finished. */
  accelerator: VmAccelerator | null;
  /** That boot a guest. */
  accelerators: readonly VmAccelerator[];
  /** Why it launches nothing at all; null: it does. */
  problem: string | null;
  allocatable: Share;
  mostVms: number;
  images: readonly (Pick<VmImage, "id" | "sha256" | "problem" | "references"> & { fetched?: boolean })[];
  /** Prefixes of URLs from which it may fetch images. */
  imageSources?: readonly string[];
  /** Booted ahead; no lease has had them. */
  warm?: readonly WarmVm[];
  /** By image: a fetch that is outstanding, or that failed and is not repeated yet. */
  fetches?: ReadonlyMap<string, HostFetch>;
  /** By leases that have not ended. */
  reserved: Share;
  leases: number;
};

export type HostFetch = { state: "fetching"; percent: number | null } | { state: "failed"; message: string };

export type WantedVm = {
  id: string;
  label: string | null;
  imageId: string;
  imageSha256: string;
  /** From where hosts may fetch it; null: nowhere. */
  imageUrl?: string | null;
  arch: string | null;
  accelerator: VmAccelerator | null;
  vcpus: number;
  memoryMib: number;
  diskGib: number;
};

export type PlacementPolicy = {
  mostPerHost: number;
  mostInTotal: number;
};

/** What is taken in the organization, beside what each host has. */
export type Taken = {
  total: number;
  /** By label: how many have a host, and how many may. */
  labels: ReadonlyMap<string, { used: number; most: number | null }>;
};

type Situation = PlacementPolicy & {
  taken: Taken;
  /** Hosts kept free for an older lease that waits for room on them. */
  held: ReadonlyMap<string, string>;
};

const shareOf = ({ vcpus, memoryMib, diskGib }: WantedVm): Share => ({
  vcpus,
  memoryMib,
  diskMib: diskGib * 1024,
});

/** What does not change by waiting comes first. Undefined: the host can take it. */
export function whyNot(host: HostView, wanted: WantedVm, situation: Situation): HostRefusal | undefined {
  if (wanted.arch !== null && host.arch !== wanted.arch) return "arch_differs";
  if (host.accelerator !== null && wanted.accelerator !== null && !host.accelerators.includes(wanted.accelerator))
    return "accelerator_missing";
  if (!fits(shareOf(wanted), host.allocatable)) return "too_large";
  if (host.standing !== "active") return "node_not_active";
  if (!host.enabled) return "disabled";
  if (host.freshness !== "online") return "heartbeat_late";
  if (host.problem !== null) return "host_problem";
  if (host.accelerator === null) return "probe_pending";
  const image = whyNotFromImage(host, wanted);
  if (image !== undefined && !comesByFetching.has(image)) return image;
  if (situation.taken.total >= situation.mostInTotal) return "total_cap";
  if (isLabelFull(wanted, situation.taken)) return "label_cap";
  if (host.leases >= Math.min(host.mostVms, situation.mostPerHost)) return "host_cap";
  if (situation.held.has(host.id)) return "held";
  if (!fits(shareOf(wanted), freeOf(host))) return "full";
  return image;
}

/** All that is missing is an image that the host can get by itself. */
const comesByFetching: ReadonlySet<HostRefusal> = new Set([
  ...(["image_fetchable", "image_fetching", "image_fetch_failed"] as const),
]);

function whyNotFromImage(host: HostView, { imageId, imageSha256, imageUrl }: WantedVm): HostRefusal | undefined {
  const image = host.images.find(({ id }) => id === imageId);
  if (image?.sha256 === imageSha256) return image.problem === null ? undefined : "image_unusable";
  const fetchable = imageUrl && (!image || image.fetched);
  if (fetchable && !isAllowedImageUrl(imageUrl, host.imageSources ?? [])) return "image_source_refused";
  if (fetchable) {
    const fetch = host.fetches?.get(imageId);
    if (!fetch) return "image_fetchable";
    return fetch.state === "fetching" ? "image_fetching" : "image_fetch_failed";
  }
  if (!image) return "image_missing";
  if (image.problem !== null) return "image_unusable";
  return image.sha256 === null ? "image_pending" : "image_differs";
}

/** Waiting helps: another lease has to end first. */
const waitsForRoom: ReadonlySet<HostRefusal> = new Set(["host_cap", "held", "full"]);

export type Placed =
  | { host: HostView; notChosen: HostNotChosen[] }
  /** `holds`: the host that is kept free for it, because all that is missing is room. */
  | {
      host: undefined;
      notChosen: HostNotChosen[];
      holds: string | undefined;
      /** The host that is to fetch the image for it. */
      fetchOn: HostView | undefined;
    };

/** The VM that was booted ahead, on this host, which this lease can take. The host itself compares everything again. */
function warmVmFor({ warm, accelerator }: HostView, wanted: WantedVm): WarmVm | undefined {
  const needed = wanted.accelerator ?? accelerator;
  return warm?.find(
    (vm) =>
      vm.image_id === wanted.imageId &&
      vm.image_sha256 === wanted.imageSha256 &&
      vm.vcpus === wanted.vcpus &&
      vm.memory_mib === wanted.memoryMib &&
      vm.disk_mib >= wanted.diskGib * 1024 &&
      vm.accelerator === needed,
  );
}

/** Among the hosts that can take it: one that has booted a VM for it, then one that has the image in use, then the one with the most memory left. */
export function place(wanted: WantedVm, hosts: readonly HostView[], situation: Situation): Placed {
  const judged = hosts.map((host) => ({ host, reason: whyNot(host, wanted, situation) }));
  const able = judged.filter(({ reason }) => reason === undefined).map(({ host }) => host);
  const best = able.toSorted((a, b) => compare(a, b, wanted))[0];
  const notChosen = judged.flatMap(({ host, reason }) => {
    if (host === best) return [];
    return [explain(host, reason ?? "not_best", wanted, situation)];
  });
  if (best) return { host: best, notChosen };
  const short = judged.filter(({ reason }) => reason !== undefined && waitsForRoom.has(reason));
  const holds = short
    .filter(({ reason }) => reason !== "held")
    .map(({ host }) => host)
    .toSorted((a, b) => roomiest(a, b))[0]?.id;
  return { host: undefined, notChosen, holds, fetchOn: whereToFetch(judged) };
}

/** One host fetches at a time: the others are asked when it cannot. */
function whereToFetch(
  judged: readonly { host: HostView; reason: HostRefusal | undefined }[],
): HostView | undefined {
  if (judged.some(({ reason }) => reason === "image_fetching")) return undefined;
  return judged
    .filter(({ reason }) => reason === "image_fetchable")
    .map(({ host }) => host)
    .toSorted(roomiest)[0];
}

export type Plan = {
  placements: { wanted: WantedVm; host: HostView; notChosen: HostNotChosen[]; warmVmId?: string }[];
  waiting: { wanted: WantedVm; notChosen: HostNotChosen[] }[];
  /** Images that hosts are to fetch. */
  fetches: { wanted: WantedVm; host: HostView }[];
};

/**
 * The oldest first. One that only lacks room keeps the host with the most of it free, so that later and smaller ones do not
 * overtake it there for as long as they come.
 */
export function planPlacements(
  waiting: readonly WantedVm[],
  hosts: readonly HostView[],
  policy: PlacementPolicy,
  taken: Taken,
): Plan {
  const current = new Map(hosts.map((host) => [host.id, host]));
  const labels = new Map([...taken.labels].map(([label, one]) => [label, { ...one }]));
  const held = new Map<string, string>();
  let total = taken.total;
  const plan: Plan = { placements: [], waiting: [], fetches: [] };
  for (const wanted of waiting) {
    const chosen = place(wanted, [...current.values()], { ...policy, taken: { total, labels }, held });
    if (!chosen.host) {
      plan.waiting.push({ wanted, notChosen: chosen.notChosen });
      if (chosen.holds !== undefined) held.set(chosen.holds, wanted.id);
      if (chosen.fetchOn) {
        plan.fetches.push({ wanted, host: chosen.fetchOn });
        current.set(chosen.fetchOn.id, withFetch(chosen.fetchOn, wanted.imageId));
      }
      continue;
    }
    const { host, notChosen } = chosen;
    const taken = warmVmFor(host, wanted);
    plan.placements.push({ wanted, host, notChosen, ...(taken && { warmVmId: taken.vm_id }) });
    const reserved = add(host.reserved, shareOf(wanted));
    const warm = host.warm?.filter((vm) => vm !== taken) ?? [];
    current.set(host.id, { ...host, reserved, warm, leases: host.leases + 1 });
    total += 1;
    const label = wanted.label === null ? undefined : labels.get(wanted.label);
    if (label) label.used += 1;
  }
  return plan;
}

function withFetch(host: HostView, imageId: string): HostView {
  const fetches = new Map(host.fetches).set(imageId, { state: "fetching", percent: null } as const);
  return { ...host, fetches };
}

function compare(a: HostView, b: HostView, wanted: WantedVm): number {
  const inUse = (host: HostView) =>
    Number((host.images.find(({ id }) => id === wanted.imageId)?.references ?? 0) > 0);
  const booted = (host: HostView) => Number(warmVmFor(host, wanted) !== undefined);
  return booted(b) - booted(a) || inUse(b) - inUse(a) || roomiest(a, b);
}

function roomiest(a: HostView, b: HostView): number {
  return freeOf(b).memoryMib - freeOf(a).memoryMib || (a.id < b.id ? -1 : 1);
}

export const freeOf = ({ allocatable, reserved }: Pick<HostView, "allocatable" | "reserved">): Share => ({
  vcpus: allocatable.vcpus - reserved.vcpus,
  memoryMib: allocatable.memoryMib - reserved.memoryMib,
  diskMib: allocatable.diskMib - reserved.diskMib,
});

const add = (a: Share, b: Share): Share => ({
  vcpus: a.vcpus + b.vcpus,
  memoryMib: a.memoryMib + b.memoryMib,
  diskMib: a.diskMib + b.diskMib,
});

const fits = (share: Share, room: Share) =>
  share.vcpus <= room.vcpus && share.memoryMib <= room.memoryMib && share.diskMib <= room.diskMib;

function isLabelFull({ label }: WantedVm, { labels }: Taken): boolean {
  const one = label === null ? undefined : labels.get(label);
  return one !== undefined && one.most !== null && one.used >= one.most;
}

export function explain(
  host: HostView,
  reason: HostRefusal,
  wanted: WantedVm,
  situation: Situation,
): HostNotChosen {
  return { host_id: host.id, name: host.name, reason, message: messages[reason](host, wanted, situation) };
}

const inGib = (mib: number) => `${Math.round((mib / 1024) * 10) / 10} GiB`;
const sizes = ({ vcpus, memoryMib, diskMib }: Share) =>
  `${vcpus} vCPU, ${inGib(memoryMib)} memory and ${inGib(diskMib)} disk`;

/** Each says what to do. `cpu_free` and `ram_free_mb` are the names that operators of VM hosts know. */
const messages: Record<HostRefusal, (host: HostView, wanted: WantedVm, situation: Situation) => string> = {
  arch_differs: ({ arch }, wanted) =>
    `It is ${arch}, and the lease needs ${wanted.arch}. Use a host of that architecture.`,
  accelerator_missing: ({ name, accelerator, accelerators }, wanted) =>
    `selected_accel not supported by host: it has ${accelerators.join(", ") || "none"} and uses ${accelerator}, and the lease needs ` +
    `${wanted.accelerator}. Request another accelerator or none, or make ${wanted.accelerator} work on ${name}; its agent then selects it by itself.`,
  too_large: ({ allocatable }, wanted) =>
    `VMs on it may use ${sizes(allocatable)} in all, and the lease needs ${sizes(shareOf(wanted))}. Choose a smaller profile.`,
  node_not_active: ({ name, standing }) =>
    `It is ${standing} and takes no new work. \`holdfast node reactivate ${name}\` changes that.`,
  disabled: ({ name }) => `It is disabled (enabled=false). Run \`holdfast host enable ${name}\`.`,
  heartbeat_late: ({ name }) =>
    `Its heartbeat does not reach the control plane. Check it with \`holdfast node show ${name}\`.`,
  host_problem: ({ problem }) => `It cannot launch VMs: ${problem}`,
  probe_pending: () => "It is still finding out which accelerator works. No action is needed.",
  image_missing: ({ name }, { imageId }) =>
    `It does not have the image ${imageId}. Put the file at NODE_AGENT_BASE_IMAGE_DIR/${imageId}.qcow2 on ${name}.`,
  image_source_refused: ({ name }, { imageId, imageUrl }) =>
    `It does not have the image ${imageId}, and its owner does not let it fetch ${imageUrl}. ` +
    `Add the address to HOLDFAST_VM_IMAGE_SOURCES in the settings of the agent on ${name}.`,
  image_fetchable: (_, { imageId }) =>
    `It does not have the image ${imageId} yet, and can fetch it. No action is needed.`,
  image_fetching: ({ fetches }, { imageId }) => {
    const fetch = fetches?.get(imageId);
    const percent = fetch?.state === "fetching" && fetch.percent !== null ? ` (${fetch.percent} %)` : "";
    return `It is fetching the image ${imageId}${percent}. No action is needed.`;
  },
  image_fetch_failed: ({ fetches, name }, { imageId }) => {
    const fetch = fetches?.get(imageId);
    const why = fetch?.state === "failed" ? fetch.message : "";
    return (
      `It could not fetch the image ${imageId}: ${why} It tries again later; ` +
      `to try now, run \`holdfast image prewarm ${imageId} --host ${name}\`.`
    );
  },
  image_pending: (_, { imageId }) =>
    `It is still computing the digest of the image ${imageId}. No action is needed.`,
  image_differs: ({ name, images }, { imageId, imageSha256 }) =>
    `Its image ${imageId} has the digest ${short(images.find(({ id }) => id === imageId)?.sha256)}, and the catalogue has ` +
    `${short(imageSha256)}. Replace the file on ${name}, or add the new image to the catalogue under another id.`,
  image_unusable: ({ images }, { imageId }) =>
    `Its image ${imageId} cannot be used: ${images.find(({ id }) => id === imageId)?.problem}`,
  total_cap: (_, __, { taken, mostInTotal }) =>
    `The organization has ${taken.total} VMs, of at most ${mostInTotal} (HOLDFAST_VM_MOST_IN_TOTAL). Wait until one ends.`,
  label_cap: (_, { label }, { taken }) =>
    `The label ${label} has ${taken.labels.get(label ?? "")?.used} VMs, of at most ${taken.labels.get(label ?? "")?.most}. ` +
    "Wait until one ends, or raise the limit with `holdfast lease label set`.",
  host_cap: ({ leases, mostVms }, _, { mostPerHost }) =>
    `It has ${leases} VMs, of at most ${Math.min(mostVms, mostPerHost)}. Wait until one ends.`,
  held: ({ id }, _, { held }) =>
    `It is kept free for the older lease ${held.get(id)}, which waits for room on it.`,
  full: (host, wanted) => {
    const free = freeOf(host);
    return (
      `It has too little free capacity (cpu_free=${free.vcpus}, ram_free_mb=${free.memoryMib}, disk_free_mb=${free.diskMib}); ` +
      `the lease needs ${sizes(shareOf(wanted))}. Wait until a lease on it ends.`
    );
  },
  not_best: () =>
    "It could have taken the lease; another host has a VM booted ahead, the image in use, or more memory left.",
};

const short = (sha256: string | null | undefined) => `${(sha256 ?? "unknown").slice(0, 12)}…`;
