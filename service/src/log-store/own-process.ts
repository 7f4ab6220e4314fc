// What a server process knows of itself and can be asked for by the api: its log lines and what it runs with.

import type { LogStore } from "./log-store.ts";

export type OwnProcess = {
  /** Undefined: it keeps no lines. */
  logs: LogStore | undefined;
  /** By the names of the settings; of secret ones only whether they are set. */
  settings: Readonly<Record<string, string | null>>;
  /** The values of its secret settings, to be removed from whatever leaves it. */
  secrets: readonly string[];
};

export const unknownProcess: OwnProcess = { logs: undefined, settings: {}, secrets: [] };
