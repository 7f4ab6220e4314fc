// The message for a second start on the same data directory: which process uses it, since when, and how to stop it.

import { UsageError } from "@holdfast/kit/settings";
import type { DataDirectory } from "./data-directory.ts";
import { livingSupervisor, readUpFile } from "./up-file.ts";

export function occupied(data: DataDirectory): UsageError {
  const file = readUpFile(data.upFile);
  const supervisor = file && livingSupervisor(file);
  if (!file || !supervisor) {
    return new UsageError(
      `Another \`holdfast up\` or \`holdfast down\` is using ${data.path}. Try again in a moment.`,
    );
  }
  const where = file.api_url ? ` at ${file.api_url}` : ", still starting";
  return new UsageError(
    `Holdfast is already running on ${data.path}: pid ${supervisor.pid}, since ${file.started_at}${where}. ` +
      "Stop it with `holdfast down`, or set HOLDFAST_DATA_DIR and other ports to run a second one.",
  );
}
