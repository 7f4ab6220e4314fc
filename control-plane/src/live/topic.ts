// A topic that open pages follow. What is published carries ids; the rows that come with them decide who may see it.

import type { GrantLevel } from "@holdfast/contracts/endpoints/allocations";
import type { Scope } from "@holdfast/contracts/public/permissions";
import type { Owner } from "../allocations/access.ts";
import type { ApiContext } from "../api/context.ts";
import type { Sql } from "../database/connect.ts";
import type { Topic } from "../mechanisms/signals.ts";

/** A thing that changed, with what decides who may see that it did. */
export type ChangedRow = {
  id: string;
  org_id: string;
  /** Null: it belongs to no node. */
  node_id: string | null;
  /** Null: it belongs to no allocation, and everybody in the organization may see it. */
  allocation: (Owner & { grants: { grantee_id: string; level: GrantLevel; expires_at: string }[] }) | null;
  /** Who opened it, of a terminal. */
  user_key: string | null;
  read_at: Date;
};

/** By a signal with the ids of what changed. */
export type SignalledTopic = {
  topic: string;
  signal: Topic;
  select(system: Sql, ids: string[]): Promise<ChangedRow[]>;
};

/** Of an organization as a whole. Returns an unsubscribe function. */
export type WholeTopic = {
  topic: string;
  subscribe(api: ApiContext, changed: (orgId: string) => void): () => void;
};

/** `topic`: what pages call it; their query keys begin with it or its plural. `scope`: what one needs to follow it. */
export type LiveTopic = { scope: Scope } & (SignalledTopic | WholeTopic);
