// The project that an allocation belongs to; nothing to choose while there is only one.

import { listProjects } from "@holdfast/contracts/endpoints/projects";
import { useQuery } from "@tanstack/react-query";
import type { ComponentProps } from "react";
import { FOUND_AT_ONCE, Picker } from "../../design/forms/Picker.tsx";
import { useActing } from "../../session.ts";

export function ProjectField(props: Pick<ComponentProps<typeof Picker>, "value" | "onChange">) {
  const { org, call } = useActing();
  const queryKey = ["org", org.id, "projects", "choice"];
  const some = useQuery({
    queryKey: [...queryKey, "count"],
    queryFn: ({ signal }) => call(listProjects, { query: { limit: 2 }, signal }),
  }).data?.items;
  if (!some || some.length < 2) return null;
  return (
    <Picker
      {...props}
      label="Project"
      noun="project"
      // As the server does without a choice.
      none="The oldest project"
      queryKey={queryKey}
      find={async (text, signal) => {
        const query = { ...(text ? { search: text } : {}), limit: FOUND_AT_ONCE };
        const { items, next_cursor } = await call(listProjects, { query, signal });
        const options = items.map(({ id, name, slug }) => ({ id, label: name, detail: slug }));
        return { options, hasMore: next_cursor !== null };
      }}
    />
  );
}
