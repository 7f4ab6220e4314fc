// The floor below the statements of the queue: rows of two numbers in a table with nothing but its key, on the same server.

import { openOwner } from "@holdfast/control-plane/database/connect";
import type { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import type { Lab } from "../lab.ts";

export type BareRows = {
  /** Changes `count` rows in one statement, those of a batch; `swift` does not wait for the disk. */
  update(commit: "swift" | "durable", batch: number, count: number): Promise<void>;
  /** Milliseconds of an insert and an update of one row, each on the disk before it returns. */
  twoCommits(): Promise<number>;
};

export async function openBareRows(
  lab: Lab,
  server: Awaited<ReturnType<typeof startEmbeddedPostgres>>,
  { rows }: { rows: number },
): Promise<BareRows> {
  const durable = [openOwner(server.superuserUrl), openOwner(server.superuserUrl)] as const;
  const swift = openOwner(server.superuserUrl);
  lab.onClose(async () => {
    await Promise.all([...durable, swift].map((sql) => sql.end({ timeout: 1 })));
  });
  await swift.unsafe("SET synchronous_commit = off");
  await swift.unsafe("CREATE TABLE public.bare (id integer PRIMARY KEY, changes integer NOT NULL)");
  await swift`INSERT INTO public.bare SELECT i, 0 FROM generate_series(0, ${rows - 1}::integer) AS i`;
  await swift`VACUUM ANALYZE public.bare`;
  let next = rows;
  return {
    async update(commit, batch, count) {
      const ids = Array.from({ length: count }, (_, index) => (batch * count + index) % rows);
      const sql = commit === "swift" ? swift : durable[batch % 2 === 0 ? 0 : 1];
      await sql`UPDATE public.bare SET changes = changes + 1 WHERE id = ANY (${ids}::integer[])`;
    },
    async twoCommits() {
      const id = next++;
      const began = performance.now();
      await durable[0]`INSERT INTO public.bare VALUES (${id}, 0)`;
      await durable[0]`UPDATE public.bare SET changes = 1 WHERE id = ${id}`;
      return performance.now() - began;
    },
  };
}
