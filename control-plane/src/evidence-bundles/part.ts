// A part of a bundle: one file, from one query. Another one is an entry in `parts.ts`.

import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import type { Scope } from "@holdfast/contracts/public/permissions";
import type { Tx } from "../database/connect.ts";
import type { Policy } from "../drift/classify/derive.ts";
import type { Observation } from "../drift/evidence/observation.ts";
import type { Viewer } from "../drift/trace/resolve.ts";
import type { Gathered } from "../logs/ask.ts";
import type { Subject } from "./subject.ts";

export type PartContext = {
  tx: Tx;
  subject: Subject;
  viewer: Viewer;
  /** Visible to whoever creates the bundle. */
  logs: Gathered;
  /** What is known of each node now. */
  evidence: ReadonlyMap<string, readonly Observation[]>;
  policy: Policy;
  /** Where nodes are to connect. */
  profile: EnvironmentProfile;
  now: Date;
};

export type BundlePart = {
  path: string;
  /** For the README. */
  title: string;
  /** Without this scope it is left out. */
  needs?: Scope;
  /** Null: there is nothing of it, and no file. An array becomes a list, or lines in a `.jsonl`. */
  read(context: PartContext): Promise<unknown>;
};
