// Shown while a page gets no live updates. With live updates there is nothing to show.

import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useLiveState } from "../../live.ts";

export function LiveMark() {
  const down = useLiveState() === "down";
  return (
    <span role="status" className="text-sm">
      {down && (
        <span title="The live connection is down. This page polls the server every 5 seconds instead.">
          <StatusMark state="unknown">Not live, polling every 5 s</StatusMark>
        </span>
      )}
    </span>
  );
}
