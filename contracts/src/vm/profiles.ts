// Sizes of VMs, and the names that people give to requests for one. No schema library here: pages read it too.

export const vmProfiles = ["tiny", "small", "medium", "large"] as const;
export type VmProfile = (typeof vmProfiles)[number];

export type VmSize = { vcpus: number; memory_mib: number; disk_gib: number };

/** `tiny` is for tests and probes. */
export const sizeOfProfile: Record<VmProfile, VmSize> = {
  tiny: { vcpus: 1, memory_mib: 256, disk_gib: 1 },
  small: { vcpus: 2, memory_mib: 4096, disk_gib: 40 },
  medium: { vcpus: 4, memory_mib: 8192, disk_gib: 80 },
  large: { vcpus: 8, memory_mib: 16_384, disk_gib: 120 },
};
