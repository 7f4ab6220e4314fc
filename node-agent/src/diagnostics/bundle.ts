// What `holdfast agent diagnose` reports about recovery bundles on this host: the one that is being tried, or the last one.

import { readPast, readStaged } from "../bundle/staged.ts";
import type { StateFiles } from "../identity/state-directory.ts";

export type BundlePicture = {
  id: string;
  seq: number;
  applied_at: string;
  /** `applied`: it has worked. `reverted`: it was given up, and the set before it stayed. */
  state: "being_tried" | "applied" | "reverted";
  /** Why it was given up. */
  why: string | null;
};

/** Null: none was ever applied here, or it cannot be read. */
export function lookAtBundle(files: StateFiles): BundlePicture | null {
  try {
    const staged = readStaged(files);
    if (staged) {
      const { bundle_id: id, seq } = staged.bundle.content;
      return { id, seq, applied_at: staged.applied.applied_at, state: "being_tried", why: null };
    }
    const [last] = readPast(files);
    if (!last) return null;
    const { id, seq, at: applied_at, reverted: why } = last;
    return { id, seq, applied_at, state: why === null ? "applied" : "reverted", why };
  } catch {
    return null;
  }
}

export function bundleText({ seq, applied_at, state, why }: BundlePicture): string {
  const which = `recovery bundle ${seq} of ${applied_at}`;
  switch (state) {
    case "being_tried":
      return `${which} is being tried; nothing is replaced before it has worked`;
    case "applied":
      return `${which} has worked and is in force`;
    case "reverted":
      return `${which} was given up: ${why}`;
  }
}
