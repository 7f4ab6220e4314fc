// Says when a page does not follow by itself at once. While it does, there is nothing to say.

import { StatusMark } from "../../design/StatusMark.tsx";
import { useLiveState } from "../../live.ts";

export function LiveMark() {
  const down = useLiveState() === "down";
  return (
    <span role="status" className="text-sm">
      {down && (
        <span title="The live connection is away; this page asks the server every 5 seconds instead.">
          <StatusMark state="unknown">Not live, updated every 5 s</StatusMark>
        </span>
      )}
    </span>
  );
}
