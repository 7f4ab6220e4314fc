// What the guest of a lease prints on its serial port, as it prints it.

import type { Lease } from "@holdfast/contracts/endpoints/leases";
import { useLayoutEffect, useRef } from "react";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { hasEnded } from "./lease-marks.ts";
import { useSerialLog } from "./use-serial-log.ts";

/** So near to the end counts as there. */
const NEAR_PX = 40;

export function SerialLogCard({ lease }: { lease: Lease }) {
  const { text, cut, loading, error } = useSerialLog(lease);
  const place = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text moves the end
  useLayoutEffect(() => {
    if (follows.current && place.current) place.current.scrollTop = place.current.scrollHeight;
  }, [text]);
  const onScroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = place.current ?? {};
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
  };
  return (
    <Card title="Serial log">
      {error && (
        <div className="p-5">
          <ErrorNotice error={error} />
        </div>
      )}
      {loading && !error && lease.status !== "provisioning" && (
        <div className="px-5">
          <Loading what="serial log" />
        </div>
      )}
      {(!loading || lease.status === "provisioning") && !error && text === "" && (
        <p className="px-5 py-4 text-ink-muted">
          {hasEnded(lease) ? "Nothing of its serial log was kept." : "The guest has printed nothing yet."}
        </p>
      )}
      {text !== "" && (
        // biome-ignore lint/a11y/useSemanticElements: a section would need a heading of its own
        <div
          ref={place}
          onScroll={onScroll}
          role="region"
          aria-label="Serial log"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
          tabIndex={0}
          className="max-h-[28rem] overflow-auto px-5 py-4"
        >
          {cut && <p className="mb-2 text-sm text-ink-muted">Older output is not shown.</p>}
          <pre className="font-mono text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</pre>
        </div>
      )}
    </Card>
  );
}
