// The catalogue of images over HTTP. A lease locks the images when it is stored, and so does a retirement: neither overlooks the
// other.

import {
  addImage,
  listImages,
  type PrewarmedHost,
  prewarmImage,
  retireImage,
  type VmImageEntry,
} from "@holdfast/contracts/endpoints/images";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { nameOf } from "../people/actor.ts";
import { type HostRow, selectHosts, toView } from "./hosts-view.ts";
import { type ImageOrder, orderImageTask, percentOf, selectImageOrders } from "./image-orders.ts";
import { explain, type HostView, whyNot } from "./place.ts";

type ImageRow = {
  id: string;
  source: "manual_local" | "remote_cache";
  url: string | null;
  sha256: string;
  created_by: string;
  created_at: Date;
  retired_at: Date | null;
  leases: number;
  labels: string[];
};

export function imageRoutes(api: ApiContext): void {
  orgRoute(api, listImages, async ({ tx, org }) => {
    const rows = await selectEntries(tx);
    const hosts = await selectHosts(tx, { orgId: org.id });
    const known = new Set(rows.map(({ id }) => id));
    const unlisted = hosts.flatMap((host) =>
      (host.report?.images ?? [])
        .filter(({ id }) => !known.has(id))
        .map(({ id, sha256 }) => ({ id, sha256, host_id: host.node_id, host_name: host.name })),
    );
    const orders = await selectImageOrders(tx, org.id);
    return { items: rows.map((row) => toEntry(row, hosts, orders)), unlisted };
  });

  orgRoute(api, addImage, async ({ tx, org, body, actor, touched }) => {
    const hosts = await selectHosts(tx, { orgId: org.id });
    if (body.url !== undefined && body.sha256 === undefined)
      throw new ApiError("image_digest_unknown", { message: "An image with a URL needs its SHA-256." });
    const sha256 = body.sha256 ?? reportedDigest(body.id, hosts);
    const [known] = await lockImage(tx, body.id);
    if (known?.retired_at === null && known.sha256 !== sha256) {
      throw new ApiError("image_exists", { details: { image_id: body.id, sha256: known.sha256 } });
    }
    if (known && known.sha256 !== sha256) await refuseInUse(tx, body.id);
    // The same file keeps its URL until another one is given.
    const url = body.url ?? (known?.sha256 === sha256 ? known.url : null);
    await tx`
      INSERT INTO vm_images (org_id, id, source, sha256, url, created_by)
      VALUES (${org.id}, ${body.id}, ${url === null ? "manual_local" : "remote_cache"}, ${sha256}, ${url}, ${nameOf(actor)})
      ON CONFLICT (org_id, id) DO UPDATE SET sha256 = excluded.sha256, source = excluded.source, url = excluded.url,
        retired_at = NULL`;
    touched({ type: "image", name: body.id }, { sha256, url });
    return entryOf(tx, org.id, body.id);
  });

  orgRoute(api, retireImage, async ({ tx, org, params, touched }) => {
    const id = params.image_id;
    const [known] = await lockImage(tx, id);
    if (!known) throw new ApiError("not_found", { message: "Image not found in the catalogue." });
    await refuseInUse(tx, id);
    await tx`UPDATE vm_images SET retired_at = coalesce(retired_at, now()) WHERE id = ${id}`;
    touched({ type: "image", name: id });
    return entryOf(tx, org.id, id);
  });

  orgRoute(api, prewarmImage, async (call) => {
    const { tx, org, params, body, actor, correlationId, touched, afterCommit } = call;
    const [image] = await selectEntries(tx, params.image_id);
    if (!image) throw new ApiError("not_found", { message: "Image not found in the catalogue." });
    if (image.retired_at !== null) throw new ApiError("image_retired");
    if (image.url === null) throw new ApiError("image_not_fetchable");
    const by = auditActor(actor, org.role);
    const hosts: PrewarmedHost[] = [];
    const known = await selectHosts(tx, { orgId: org.id });
    for (const row of chosenHosts(known, body.host_ids)) {
      const host = { host_id: row.node_id, name: row.name, task_id: null, message: null };
      const verdict = whyNotPrewarmed(toView(row, api.nodes.staleAfterSeconds), image);
      if (verdict) {
        hosts.push({ ...host, ...verdict });
        continue;
      }
      const wanted = { orgId: org.id, nodeId: row.node_id, image, action: "fetch", by, correlationId } as const;
      const task = await orderImageTask(tx, api.tasks, wanted, { again: true });
      if (task) afterCommit(() => api.tasks.enqueued(task));
      const outstanding = task?.id ?? (await outstandingTask(tx, org.id, row.node_id, image.id));
      hosts.push({ ...host, outcome: "fetching", task_id: outstanding });
    }
    touched({ type: "image", name: image.id }, { hosts: hosts.map(({ name, outcome }) => ({ name, outcome })) });
    return { image_id: image.id, hosts };
  });
}

/** Those that were named, or all that take leases. Throws not_found for one that does not exist. */
function chosenHosts(hosts: readonly HostRow[], ids: readonly string[] | undefined): HostRow[] {
  if (ids === undefined)
    return hosts.filter(({ enabled, node_status, revoked }) => enabled && node_status === "active" && !revoked);
  return [...new Set(ids)].map((id) => {
    const host = hosts.find(({ node_id }) => node_id === id);
    if (!host) throw new ApiError("not_found", { message: "VM host not found." });
    return host;
  });
}

/** Undefined: it can fetch the image. */
function whyNotPrewarmed(host: HostView, image: ImageRow): Pick<PrewarmedHost, "outcome" | "message"> | undefined {
  const wanted = { id: "", label: null, imageId: image.id, imageSha256: image.sha256, imageUrl: image.url };
  const none = { arch: null, accelerator: null, vcpus: 0, memoryMib: 0, diskGib: 0 };
  const situation = { mostPerHost: Number.MAX_SAFE_INTEGER, mostInTotal: 1, held: new Map() };
  const taken = { total: 0, labels: new Map() };
  const able = { ...host, enabled: true, mostVms: Number.MAX_SAFE_INTEGER };
  const reason = whyNot(able, { ...wanted, ...none }, { ...situation, taken });
  if (reason === undefined) return { outcome: "ready", message: null };
  if (reason === "image_fetchable") return undefined;
  return {
    outcome: "refused",
    message: explain(host, reason, { ...wanted, ...none }, { ...situation, taken }).message,
  };
}

async function outstandingTask(tx: Tx, orgId: string, nodeId: string, imageId: string): Promise<string | null> {
  const orders = await selectImageOrders(tx, orgId);
  return orders.find((one) => one.node_id === nodeId && one.image_id === imageId)?.task_id ?? null;
}

const lockImage = (tx: Tx, id: string) =>
  tx<
    Pick<ImageRow, "sha256" | "url" | "retired_at">[]
  >`SELECT sha256, url, retired_at FROM vm_images WHERE id = ${id} FOR UPDATE`;

async function refuseInUse(tx: Tx, id: string): Promise<void> {
  const [entry] = await selectEntries(tx, id);
  if (!entry || (entry.leases === 0 && entry.labels.length === 0)) return;
  throw new ApiError("image_in_use", {
    message: `The image ${id} is used by ${entry.leases} leases and ${entry.labels.length} labels.`,
    details: { image_id: id, leases: entry.leases, labels: entry.labels },
  });
}

async function selectEntries(tx: Tx, id?: string): Promise<ImageRow[]> {
  return tx<ImageRow[]>`
    SELECT i.id, i.source, i.url, i.sha256, i.created_by, i.created_at, i.retired_at,
      (SELECT count(*)::int FROM vm_leases l WHERE l.org_id = i.org_id AND l.image_id = i.id AND l.finished_at IS NULL) AS leases,
      ARRAY(SELECT b.label FROM vm_labels b WHERE b.org_id = i.org_id AND b.image_id = i.id ORDER BY b.label) AS labels
    FROM vm_images i ${id === undefined ? tx`` : tx`WHERE i.id = ${id}`} ORDER BY i.retired_at NULLS FIRST, i.id`;
}

async function entryOf(tx: Tx, orgId: string, id: string): Promise<VmImageEntry> {
  const [row] = await selectEntries(tx, id);
  if (!row) throw new ApiError("not_found");
  return toEntry(row, await selectHosts(tx, { orgId }), await selectImageOrders(tx, orgId));
}

function toEntry(row: ImageRow, hosts: readonly HostRow[], orders: readonly ImageOrder[]): VmImageEntry {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    retired_at: row.retired_at?.toISOString() ?? null,
    hosts: hosts.flatMap((host) => {
      const order = orders.find(({ node_id, image_id }) => node_id === host.node_id && image_id === row.id);
      const shown = onHost(row, host, order);
      return shown ? [{ host_id: host.node_id, name: host.name, ...shown }] : [];
    }),
  };
}

type OnHost = Omit<VmImageEntry["hosts"][number], "host_id" | "name">;

/** Undefined: the host neither has the image nor is it to get it. */
function onHost(row: ImageRow, host: HostRow, order: ImageOrder | undefined): OnHost | undefined {
  const image = host.report?.images.find(({ id }) => id === row.id);
  const shown = { fetched: image?.fetched ?? false, percent: null, message: null };
  if (order?.task_id) {
    if (order.action === "remove") return { ...shown, state: "removing" };
    return { ...shown, state: "fetching", percent: percentOf(order) };
  }
  if (image?.sha256 === row.sha256 && image.problem === null) return { ...shown, state: "ready" };
  if (order?.action === "fetch" && order.failure) {
    const { message, next_step } = order.failure;
    return { ...shown, state: "fetch_failed", message: `${message} ${next_step}` };
  }
  if (!image) return undefined;
  if (image.problem !== null) return { ...shown, state: "unusable" };
  return { ...shown, state: image.sha256 === null ? "pending" : "differs" };
}

/** Throws image_digest_unknown unless all hosts with the image report the same. */
function reportedDigest(id: string, hosts: readonly HostRow[]): string {
  const reported = hosts.flatMap((host) => {
    const image = host.report?.images.find((one) => one.id === id);
    return image ? [{ host: host.name, sha256: image.sha256 }] : [];
  });
  const digests = new Set(reported.map(({ sha256 }) => sha256));
  const [only] = digests;
  if (digests.size === 1 && only) return only;
  throw new ApiError("image_digest_unknown", {
    ...(reported.length === 0 ? { message: `No digest was given, and no host reports the image ${id}.` } : {}),
    details: { image_id: id, reported },
  });
}
