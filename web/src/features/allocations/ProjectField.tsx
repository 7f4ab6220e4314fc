// The project that an allocation belongs to; nothing to choose while there is only one.

import { listProjects } from "@holdfast/contracts/endpoints/projects";
import { useQuery } from "@tanstack/react-query";
import { SelectField } from "../../design/Field.tsx";
import { useActing } from "../../session.ts";

export function ProjectField({ value, onChange }: { value: string; onChange: (id: string) => void }) {
  const { org, call } = useActing();
  const projects = useQuery({
    queryKey: ["org", org.id, "projects", "choice"],
    queryFn: ({ signal }) => call(listProjects, { query: { limit: 200 }, signal }),
  }).data?.items;
  if (!projects || projects.length < 2) return null;
  // Newest first; without a choice the server takes the oldest.
  const oldest = projects.at(-1)?.id ?? "";
  return (
    <SelectField label="Project" value={value || oldest} onChange={(event) => onChange(event.currentTarget.value)}>
      {projects.map((project) => (
        <option key={project.id} value={project.id}>
          {project.name}
        </option>
      ))}
    </SelectField>
  );
}
