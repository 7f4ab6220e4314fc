// The way from any id that a page shows to its whole story, for operators of nodes.

import { Link } from "@tanstack/react-router";
import { useActing } from "../../session.ts";

/** `of`: what the id is, where a page shows several. */
export function TraceLink({ id, of }: { id: string; of?: string }) {
  const { may } = useActing();
  if (!may("nodes:diagnose")) return null;
  return (
    <Link
      to="/trace/$traceId"
      params={{ traceId: id }}
      className="rounded-sm text-sm font-medium text-kelp hover:underline"
    >
      Show the whole story{of && <span className="sr-only"> of the {of}</span>}
    </Link>
  );
}
