// Follows the serial log of a VM while a page shows it: one request at a time, which the host answers when there is more. The page
// keeps the newest part.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { type Lease, readLeaseLog } from "@holdfast/contracts/endpoints/leases";
import { useEffect, useEffectEvent, useState } from "react";
import { useActing } from "../../session.ts";
import { hasEnded } from "./lease-marks.ts";
import { nothing, type SerialLog, withPiece } from "./serial-text.ts";

type Piece = AnswerOf<typeof readLeaseLog>;

const WAIT_SECONDS = 20;
const RETRY_MS = 3_000;

export function useSerialLog(lease: Pick<Lease, "id" | "status" | "vm_id">): SerialLog {
  const { call } = useActing();
  const [log, setLog] = useState(nothing);
  const read = useEffectEvent((from: string | null, signal: AbortSignal) =>
    call(readLeaseLog, {
      params: { lease_id: lease.id },
      query: from === null ? {} : { from, wait_seconds: WAIT_SECONDS },
      signal,
    }),
  );
  // Another VM has another log. When it is gone, what was read stays; a page that is opened later gets the end that was kept.
  const key = `${lease.id} ${lease.vm_id}`;
  const isThere = !["requested", "provisioning"].includes(lease.status);
  const isOver = hasEnded(lease) || lease.status === "orphaned";
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key is what the log is of
  useEffect(() => {
    if (!isThere) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    const follow = async () => {
      let next: string | null = null;
      while (!signal.aborted) {
        try {
          const piece: Piece = await read(next, signal);
          const isFirst = next === null;
          setLog((before) =>
            isFirst && isOver && before.text ? before : withPiece(isFirst ? nothing : before, piece),
          );
          next = piece.next;
          if (piece.ended || next === null) return;
        } catch (error) {
          if (signal.aborted) return;
          setLog((before) => ({ ...before, loading: false, error: error as Error }));
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
    };
    void follow();
    return () => leaving.abort();
  }, [key, isThere, isOver]);
  return log;
}
