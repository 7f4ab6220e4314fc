// Fetches base images and removes them again. A file gets its final name only when its digest and its form are right. What was received
// so far is on record before it exists (tasks/phases): a later task goes on with it, and what nobody asks for again is removed.
//
// The agent remembers which images it fetched. It never replaces or removes a file that somebody else put there.

import { chmodSync, mkdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FetchedVmImage, RemovedVmImage } from "@holdfast/contracts/node/vm-host";
import { isAllowedImageUrl } from "@holdfast/contracts/vm/image-sources";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { TaskFailed, type Vms } from "@holdfast/tasks/executor";
import { filePhaseStore, recordedOperations } from "@holdfast/tasks/phases/file-store";
import { type Phase, runPhases, undoPhases } from "@holdfast/tasks/phases/phases";
import type { VmDriver } from "../../drivers/qemu/driver.ts";
import { type Images, sha256Of } from "../images.ts";
import { FetchedImages } from "../record.generated.ts";
import { type Download, download, startOver } from "./download.ts";

type FetchTask = Parameters<Vms["fetchImage"]>[0];
type Image = { id: string; sha256: string };

type ImageFetches = {
  fetch(task: FetchTask): Promise<FetchedVmImage>;
  remove(image: Image): RemovedVmImage;
  isFetched(image: { id: string; sha256: string | null | undefined }): boolean;
  /** Removes what was received of images that nobody asks for any more. */
  removeAbandoned(): Promise<void>;
};

/** Kept free, for the overlays of running VMs. */
const RESERVE_BYTES = 256 * 1024 ** 2;
const KEPT_MS = 24 * 3600_000;

type PartPlan = { path: string };
type Context = { directory: string; act: (plan: PartPlan) => Promise<void> };

/** Complete means here: the part is kept, until it is used up or given up. */
const phases: readonly Phase<Context, PartPlan>[] = [
  {
    name: "part",
    plan: ({ directory }) => ({ path: join(directory, "part") }),
    act: ({ act }, plan) => act(plan),
    undo: async ({ directory }) => rmSync(directory, { recursive: true, force: true }),
  },
];

export function createImageFetches(options: {
  directory: string;
  stateDir: string;
  sources: readonly string[];
  driver: Pick<VmDriver, "inspectImage">;
  images: Pick<Images, "digestOf" | "knownDigest" | "place" | "forget">;
  /** VMs on this host whose overlays need the image. */
  references: (id: string) => number;
  onChange: () => void;
  /** Of the file system; tests have others. */
  room?: () => number;
  pause?: Download["pause"];
  now?: () => number;
}): ImageFetches {
  const { directory, stateDir, sources, images, references } = options;
  const { room = () => freeBytes(directory) - RESERVE_BYTES, now = Date.now } = options;
  const listFile = join(stateDir, "vm-fetched-images.json");
  const running = new Set<string>();
  const pathOf = (id: string) => join(directory, `${id}.qcow2`);
  const operationOf = (sha256: string) => ({
    store: filePhaseStore(stateDir, `image-${sha256}`),
    context: { directory: join(directory, `.fetching-${sha256}`), act: async () => undefined },
  });
  const remember = (change: (list: Record<string, string>) => void) => {
    const list = { ...readList(listFile) };
    change(list);
    writeFileDurably(listFile, `${JSON.stringify(list)}\n`, 0o600);
  };
  const isFetched: ImageFetches["isFetched"] = ({ id, sha256 }) =>
    typeof sha256 === "string" && readList(listFile)[id] === sha256;

  /** Throws a TaskFailed if another file has the image's name and must stay. Returns the bytes of the right one. */
  const findPresent = async ({ id, sha256 }: Image): Promise<number | undefined> => {
    const present = statSync(pathOf(id), { throwIfNoEntry: false });
    if (!present) return undefined;
    const digest = await images.digestOf(id);
    if (digest === sha256) return present.size;
    if (!isFetched({ id, sha256: digest }))
      throw new TaskFailed(
        "vm_image_not_replaced",
        `${pathOf(id)} has SHA-256 ${digest}, and was not fetched by Holdfast.`,
      );
    if (references(id) > 0)
      throw new TaskFailed("vm_image_not_replaced", `${pathOf(id)} has another digest, and VMs run from it.`);
    return undefined;
  };

  const receive = async ({ image, url, enter, progress, signal }: FetchTask, path: string) => {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    const wanted: Download = {
      ...{ url, path, room, signal, pause: options.pause, onProgress: progress },
      isAllowed: (one) => isAllowedImageUrl(one, sources),
    };
    for (let begunAnew = false; ; begunAnew = true) {
      enter("downloading");
      const { resumedFrom } = await download(wanted);
      enter("verifying");
      const digest = await sha256Of(path);
      if (digest === image.sha256) return resumedFrom;
      startOver(path);
      // The parts may be of two files, if the server did not say that it has another one now.
      if (resumedFrom === 0 || begunAnew)
        throw new TaskFailed(
          "vm_image_digest_wrong",
          `${url} has SHA-256 ${digest}; ${image.sha256} was expected.`,
        );
    }
  };

  const fetch = async (task: FetchTask): Promise<FetchedVmImage> => {
    const { image, url, enter } = task;
    enter("checking");
    const result = { image_id: image.id, sha256: image.sha256 };
    const present = await findPresent(image);
    if (present !== undefined) return { ...result, file_bytes: present, fetched: false, resumed_from_bytes: 0 };
    if (!isAllowedImageUrl(url, sources))
      throw new TaskFailed("vm_image_source_refused", `${url} is not in HOLDFAST_VM_IMAGE_SOURCES of this host.`);
    const { store, context } = operationOf(image.sha256);
    let interrupted: unknown;
    let received: { path: string; from: number } | undefined;
    const act = async ({ path }: PartPlan) => {
      try {
        received = { path, from: await receive(task, path) };
      } catch (error) {
        if (!isWorthKeeping(error)) throw error;
        interrupted = error;
      }
    };
    try {
      await runPhases({ phases, context: { ...context, act }, store });
      if (!received) throw interrupted;
      await checkForm(options.driver, received.path);
      enter("placing");
      // On record first: a crash in between leaves a file that the agent knows as its own.
      remember((list) => {
        list[image.id] = image.sha256;
      });
      chmodSync(received.path, 0o644);
      await images.place(image.id, received.path, image.sha256);
    } catch (error) {
      if (!isWorthKeeping(error)) await undoPhases({ phases, context, store });
      throw error;
    }
    await undoPhases({ phases, context, store });
    options.onChange();
    const { size } = statSync(pathOf(image.id));
    return { ...result, file_bytes: size, fetched: true, resumed_from_bytes: received.from };
  };

  return {
    isFetched,
    async fetch(task) {
      running.add(task.image.sha256);
      try {
        return await fetch(task);
      } finally {
        running.delete(task.image.sha256);
      }
    },
    remove({ id, sha256 }) {
      const keep = (kept: string | null): RemovedVmImage => ({ image_id: id, removed: false, kept });
      if (!statSync(pathOf(id), { throwIfNoEntry: false })) {
        remember((list) => delete list[id]);
        return keep("It is not on this host.");
      }
      if (!isFetched({ id, sha256 })) return keep("It was not fetched by Holdfast with this digest.");
      if (references(id) > 0) return keep(`${references(id)} VMs on this host need it.`);
      if (images.knownDigest(id) !== sha256) return keep("The file was changed after it was fetched.");
      removeIfPresent(pathOf(id));
      images.forget(id);
      remember((list) => delete list[id]);
      options.onChange();
      return { image_id: id, removed: true, kept: null };
    },
    async removeAbandoned() {
      for (const operation of recordedOperations(stateDir)) {
        const sha256 = /^image-([0-9a-f]{64})$/.exec(operation)?.[1];
        if (sha256 === undefined || running.has(sha256)) continue;
        const { store, context } = operationOf(sha256);
        const part = statSync(join(context.directory, "part"), { throwIfNoEntry: false });
        if (part && now() - part.mtimeMs < KEPT_MS) continue;
        await undoPhases({ phases, context, store });
      }
    },
  };
}

async function checkForm(driver: Pick<VmDriver, "inspectImage">, path: string): Promise<void> {
  const { problem } = await driver
    .inspectImage(path)
    .catch((error: Error) => ({ problem: error.message.slice(0, 300) }));
  if (problem !== undefined) throw new TaskFailed("vm_image_unusable", `${problem}.`);
}

/** The source may respond again, or the task may come again. */
function isWorthKeeping(error: unknown): boolean {
  return !(error instanceof TaskFailed) || error.code === "vm_image_source_unreachable";
}

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

function readList(path: string): Record<string, string> {
  try {
    const text = readFileIfPresent(path);
    return text === undefined ? {} : FetchedImages.parse(JSON.parse(text));
  } catch {
    return {};
  }
}
