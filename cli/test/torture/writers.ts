// Writes through the public API without a pause, and remembers exactly what was acknowledged. A
// request that got no answer is sent again with the same idempotency key until it gets one, as a
// careful client would.

import { CallError, createClient } from "@holdfast/contracts/client";
import { createOrganization } from "@holdfast/contracts/endpoints/organizations";
import { createProject, listProjects } from "@holdfast/contracts/endpoints/projects";

export type Target = { url: string; token: string };

export type Writers = {
  /** Slugs of the projects whose creation was answered with success. */
  acknowledged: ReadonlySet<string>;
  /** Requests that had to be repeated. */
  repeated(): number;
  /** Answers that no repetition can change; any one is a failure of the torture. */
  refusals: readonly string[];
  stop(): Promise<void>;
};

export async function createTortureOrganization(target: Target): Promise<string> {
  const call = createClient({ baseUrl: target.url, token: target.token });
  const made = await call(createOrganization, { body: { slug: "torture", name: "Torture" } });
  return made.id;
}

/** `target` is asked before every request, because a restarted server may listen elsewhere. */
export function startWriting(options: { orgId: string; writers: number; target(): Target }): Writers {
  const acknowledged = new Set<string>();
  const refusals: string[] = [];
  let repeated = 0;
  let stopping = false;

  const writeOn = async (writer: number) => {
    for (let number = 0; !stopping; number += 1) {
      const slug = `w${writer}-${number}`;
      while (!(await create(slug)) && !stopping) {
        repeated += 1;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  /** False when it is unknown whether the project was created. */
  const create = async (slug: string): Promise<boolean> => {
    const { url, token } = options.target();
    const call = createClient({ baseUrl: url, token, orgId: options.orgId });
    try {
      await call(createProject, {
        body: { slug, name: `Project ${slug}` },
        idempotencyKey: `torture-${slug}`,
        signal: AbortSignal.timeout(5_000),
      });
      acknowledged.add(slug);
      return true;
    } catch (error) {
      if (!(error instanceof CallError) || error.envelope.retryable) return false;
      refusals.push(`${slug}: ${error.status} ${error.envelope.code} ${error.message}`);
      return true;
    }
  };
  const running = Array.from({ length: options.writers }, (_, writer) => writeOn(writer));
  return {
    acknowledged,
    refusals,
    repeated: () => repeated,
    stop: async () => {
      stopping = true;
      await Promise.all(running);
    },
  };
}

/** Which of the wanted projects the server does not have. Newest first, so recent ones are found soon. */
export async function findLost(target: Target, orgId: string, wanted: Iterable<string>): Promise<string[]> {
  const missing = new Set(wanted);
  for await (const slug of allSlugs(target, orgId)) {
    missing.delete(slug);
    if (missing.size === 0) break;
  }
  return [...missing];
}

/** How many projects exist more than once: a repeated request that was carried out twice. */
export async function countDoubled(target: Target, orgId: string): Promise<number> {
  const seen = new Set<string>();
  let doubled = 0;
  for await (const slug of allSlugs(target, orgId)) {
    if (seen.has(slug)) doubled += 1;
    seen.add(slug);
  }
  return doubled;
}

async function* allSlugs(target: Target, orgId: string): AsyncGenerator<string> {
  const call = createClient({ baseUrl: target.url, token: target.token, orgId });
  let cursor: string | undefined;
  do {
    const query = { limit: 200, cursor };
    const page = await whileRetryable(() => call(listProjects, { query }));
    yield* page.items.map((project) => project.slug);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** The api may not have noticed yet that the last of its connections is dead: it says so, and to try again. */
async function whileRetryable<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof CallError) || !error.envelope.retryable) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
