// The base images of a host as its VMs and tasks use them: those that are there, and how they come and go.

import type { VmImage } from "@holdfast/contracts/node/vm-host";
import type { Vms } from "@holdfast/tasks/executor";
import type { VmHostOptions } from "./host-setup.ts";
import { createImageFetches } from "./image-fetch/image-fetches.ts";
import { createImages, type Images } from "./images.ts";

export type HostImages = Pick<Images, "verify" | "verifyUnchanged"> &
  Pick<Vms, "fetchImage" | "removeImage"> & {
    report(): VmImage[];
    /** Looks for new and changed images, and removes what was received of those that nobody wants any more. */
    refresh(): Promise<void>;
  };

export function createHostImages(
  options: Pick<VmHostOptions, "setup" | "stateDir" | "driver" | "onChange"> & {
    /** VMs on this host whose overlays need the image. */
    references: (id: string) => number;
    /** Tasks wait for it. */
    ready: Promise<void>;
  },
): HostImages {
  const { setup, stateDir, driver, onChange, references, ready } = options;
  const directory = setup.directories.images;
  const images = createImages({ directory, stateDir, driver, onChange });
  const sources = setup.imageSources;
  const fetches = createImageFetches({ directory, stateDir, driver, images, references, onChange, sources });
  return {
    verify: images.verify,
    verifyUnchanged: images.verifyUnchanged,
    report: () => images.list({ references, isFetched: fetches.isFetched }),
    async refresh() {
      await images.refresh();
      await fetches.removeAbandoned();
    },
    async fetchImage(task) {
      await ready;
      return fetches.fetch(task);
    },
    async removeImage(image) {
      await ready;
      // A file that was changed in the meantime is no longer the one that was fetched.
      await images.refresh();
      return fetches.remove(image);
    },
  };
}
