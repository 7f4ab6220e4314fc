import { Link } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";

/** To the page of a task, from where it is only summed up. */
export function TaskLink({ taskId, children }: { taskId: string; children: string }) {
  return (
    <Link
      to="/tasks/$taskId"
      params={{ taskId }}
      className="inline-flex items-center gap-1.5 rounded-sm font-medium text-kelp hover:underline"
    >
      {children}
      <Icon name="arrow" className="size-3.5" />
    </Link>
  );
}
