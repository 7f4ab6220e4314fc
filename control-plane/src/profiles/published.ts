// Which addresses nodes may use at present: those of the newest profile, and for a while those of the ones before, because
// nodes learn of a new profile with their next heartbeat and try it before they use it.

import type { Queryable } from "../database/connect.ts";
import { PROFILE_NAME } from "./profile.ts";

export type PublishedProfile = { version: number; endpoints: Readonly<Record<string, string>>; publishedAt: Date };

/** A heartbeat, a trial of the new address, and another heartbeat. */
export const ADOPT_WITHIN_MS = 180_000;
/** Nobody publishes as many within that time. */
const MOST_READ = 20;

/** Newest first. */
export async function readPublished(db: Queryable): Promise<PublishedProfile[]> {
  return db<PublishedProfile[]>`
    SELECT version, content->'endpoints' AS endpoints, created_at AS "publishedAt" FROM environment_profiles
    WHERE name = ${PROFILE_NAME} ORDER BY version DESC LIMIT ${MOST_READ}`;
}

/** Newest first: the newest, and those that were replaced less than `ADOPT_WITHIN_MS` ago. */
export function acceptable(published: readonly PublishedProfile[], now: number): PublishedProfile[] {
  const sorted = published.toSorted((a, b) => b.version - a.version);
  return sorted.filter((_, index) => {
    const replacedBy = sorted[index - 1];
    return replacedBy === undefined || now - replacedBy.publishedAt.getTime() < ADOPT_WITHIN_MS;
  });
}

const FRESH_MS = 5_000;

/** Those acceptable at present, read when somebody asks and at most every few seconds. */
export function createPublished(system: Queryable): () => Promise<PublishedProfile[]> {
  let known: { at: number; profiles: Promise<PublishedProfile[]> } | undefined;
  return async () => {
    const now = Date.now();
    if (!known || Math.abs(now - known.at) >= FRESH_MS) {
      const reading = { at: now, profiles: readPublished(system) };
      known = reading;
      reading.profiles.catch(() => {
        if (known === reading) known = undefined;
      });
    }
    return acceptable(await known.profiles, now);
  };
}
