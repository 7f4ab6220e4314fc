// The catalogue of base images. An image is a file on hosts, `<base image directory>/<id>.qcow2`; the catalogue says which digest
// it must have.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { VmImageId, VmSha256 } from "../node/vm-host.ts";
import { parseImageUrl } from "../vm/image-sources.ts";

export const VmImageEntry = z.strictObject({
  id: z.string(),
  source: z
    .enum(["manual_local", "remote_cache"])
    .describe(
      "`manual_local`: an operator puts the file on each host. `remote_cache`: hosts fetch it from `url`.",
    ),
  url: z.string().nullable(),
  sha256: z.string(),
  created_by: z.string(),
  created_at: Time,
  retired_at: Time.nullable().describe("No new lease gets it."),
  leases: z.int().describe("That have not ended and use it."),
  labels: z.array(z.string()),
  hosts: z.array(
    z.strictObject({
      host_id: Id,
      name: z.string(),
      state: z
        .enum(["ready", "differs", "unusable", "pending", "fetching", "fetch_failed", "removing"])
        .describe("`differs`: the file has another digest. `pending`: the host is computing it."),
      fetched: z.boolean().describe("The host fetched it, and removes it when the image is retired."),
      percent: z.int().nullable().describe("Of a fetch, as far as it is known."),
      message: z.string().nullable().describe("Why a fetch failed, and what to do."),
    }),
  ),
});
export type VmImageEntry = z.infer<typeof VmImageEntry>;

export const listImages = endpoint({
  name: "listImages",
  noun: "images",
  method: "GET",
  path: "/v1/images",
  summary: "List base images, and which hosts have them",
  access: { scope: "leases:read" },
  answer: z.strictObject({
    items: z.array(VmImageEntry),
    unlisted: z
      .array(z.strictObject({ id: z.string(), sha256: z.string().nullable(), host_id: Id, host_name: z.string() }))
      .describe("Images on hosts that the catalogue does not have."),
  }),
});

export const addImage = endpoint({
  name: "addImage",
  noun: "images",
  method: "POST",
  path: "/v1/images",
  summary: "Add a base image to the catalogue",
  description:
    "A retired image may be added again, also with another digest. An image in use keeps its digest: publish a changed one under another id.",
  access: { scope: "nodes:write" },
  action: "image.add",
  creates: true,
  body: z.strictObject({
    id: VmImageId,
    sha256: VmSha256.optional().describe("By default the one that hosts report, if they all report the same."),
    url: z
      .string()
      .max(2000)
      .refine(
        (text) => parseImageUrl(text) !== undefined,
        "an http:// or https:// URL without credentials, query and fragment",
      )
      .optional()
      .describe("Hosts fetch the file from there; needs `sha256`. Only hosts whose owner allows the address do."),
  }),
  answer: VmImageEntry,
  errors: ["image_exists", "image_digest_unknown", "image_in_use"],
});

export const retireImage = endpoint({
  name: "retireImage",
  noun: "images",
  method: "POST",
  path: "/v1/images/{image_id}/retire",
  summary: "Retire a base image: no new lease gets it",
  description:
    "Refused while leases or labels use it. Hosts that fetched it remove their file; files that somebody put there stay.",
  access: { scope: "nodes:write" },
  action: "image.retire",
  params: z.strictObject({ image_id: VmImageId }),
  answer: VmImageEntry,
  errors: ["image_in_use"],
});

const PrewarmedHost = z.strictObject({
  host_id: Id,
  name: z.string(),
  outcome: z.enum(["ready", "fetching", "refused"]),
  task_id: Id.nullable().describe("The task that fetches it."),
  message: z.string().nullable().describe("Why it cannot, and what to do."),
});
export type PrewarmedHost = z.infer<typeof PrewarmedHost>;

export const prewarmImage = endpoint({
  name: "prewarmImage",
  noun: "images",
  method: "POST",
  path: "/v1/images/{image_id}/prewarm",
  summary: "Let hosts fetch a base image before a lease needs it",
  description: "Without `host_ids`, every host that is active and enabled.",
  access: { scope: "nodes:write" },
  action: "image.prewarm",
  params: z.strictObject({ image_id: VmImageId }),
  body: z.strictObject({ host_ids: z.array(Id).min(1).max(100).optional() }),
  answer: z.strictObject({
    image_id: z.string(),
    hosts: z.array(PrewarmedHost),
  }),
  errors: ["image_retired", "image_not_fetchable"],
});
