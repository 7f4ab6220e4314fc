// A process that fetches an image and dies by SIGKILL when it enters a phase, or, for `half`, when it has received a million bytes. Started by
// tests with a JSON text as its only argument.

import { qemuDriver } from "../../src/drivers/qemu/qemu-driver.ts";
import { createImageFetches } from "../../src/vms/image-fetch/image-fetches.ts";
import { createImages } from "../../src/vms/images.ts";

const { directory, stateDir, sources, image, url, at } = JSON.parse(process.argv[2] ?? "") as {
  directory: string;
  stateDir: string;
  sources: string[];
  image: { id: string; sha256: string };
  url: string;
  at: string;
};
const die = () => process.kill(process.pid, "SIGKILL");
const host = { directory, stateDir, driver: qemuDriver, onChange: () => undefined };
const fetches = createImageFetches({ ...host, sources, images: createImages(host), references: () => 0 });
await fetches.fetch({
  ...{ image, url, signal: new AbortController().signal },
  enter: (phase) => {
    if (phase === at) die();
  },
  progress: ({ received_bytes }) => {
    if (at === "half" && received_bytes >= 1_000_000) die();
  },
});
