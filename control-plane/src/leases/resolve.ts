// What a request for a VM comes to: a label fills in what the request leaves out, and the profile gives the size. Pure.

import type { LeaseLabelPolicy } from "@holdfast/contracts/endpoints/leases";
import { ApiError } from "@holdfast/contracts/errors";
import type { VmAccelerator } from "@holdfast/contracts/node/vm-host";
import { sizeOfProfile, type VmProfile } from "@holdfast/contracts/vm/profiles";

export type LeaseRequest = {
  label?: string | undefined;
  image_id?: string | undefined;
  profile?: VmProfile | undefined;
  arch?: string | undefined;
  accelerator?: VmAccelerator | undefined;
};

export type CatalogueImage = { id: string; sha256: string; retired_at: Date | null };

export type ResolvedRequest = {
  label: string | null;
  imageId: string;
  imageSha256: string;
  profile: VmProfile;
  vcpus: number;
  memoryMib: number;
  diskGib: number;
  /** Null: any. */
  arch: string | null;
  accelerator: VmAccelerator | null;
};

const DEFAULT_PROFILE: VmProfile = "small";

/** Throws lease_label_unknown, lease_image_required, image_unknown or image_retired. */
export function resolveRequest(
  request: LeaseRequest,
  labels: readonly LeaseLabelPolicy[],
  images: readonly CatalogueImage[],
): ResolvedRequest {
  const label = request.label === undefined ? undefined : labels.find((one) => one.label === request.label);
  if (request.label !== undefined && !label) {
    throw new ApiError("lease_label_unknown", {
      message: `The label ${request.label} does not exist.`,
      details: { label: request.label, labels: labels.map((one) => one.label) },
    });
  }
  const imageId = request.image_id ?? label?.image_id;
  if (imageId === undefined) throw new ApiError("lease_image_required");
  const image = requireImage(imageId, images);
  const profile = request.profile ?? label?.profile ?? DEFAULT_PROFILE;
  const { vcpus, memory_mib: memoryMib, disk_gib: diskGib } = sizeOfProfile[profile];
  return {
    label: label?.label ?? null,
    imageId,
    imageSha256: image.sha256,
    ...{ profile, vcpus, memoryMib, diskGib },
    arch: request.arch ?? label?.arch ?? null,
    accelerator: request.accelerator ?? label?.accelerator ?? null,
  };
}

/** One that new leases may use. */
export function requireImage(id: string, images: readonly CatalogueImage[]): CatalogueImage {
  const image = images.find((one) => one.id === id);
  if (!image) {
    throw new ApiError("image_unknown", {
      message: `The image ${id} is not in the catalogue.`,
      details: { image_id: id, images: images.filter((one) => one.retired_at === null).map((one) => one.id) },
    });
  }
  if (image.retired_at !== null)
    throw new ApiError("image_retired", { message: `The image ${id} is retired.`, details: { image_id: id } });
  return image;
}
