// Projects: what allocations and workloads are grouped by.

import { listProjects, type Project } from "@holdfast/contracts/endpoints/projects";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { MenuItem } from "../../design/controls/Menu.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table } from "../../design/lists/Table.tsx";
import { When } from "../../design/values/When.tsx";
import { useListing } from "../../listing.ts";
import { useActing } from "../../session.ts";
import { DeleteProjectDialog, NewProjectDialog, RenameProjectDialog } from "./ProjectDialogs.tsx";
import { TabFrame } from "./TabFrame.tsx";

type Open = { dialog: "new" } | { dialog: "rename" | "delete"; project: Project };

export function ProjectsTab() {
  const { org, call, may } = useActing();
  const listing = useListing<Project>({
    key: ["org", org.id, "projects"],
    page: ({ cursor, signal }) => call(listProjects, { query: { cursor }, signal }),
  });
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const writable = may("projects:write");
  return (
    <>
      <TabFrame
        title="Projects"
        intro="Allocations and workloads belong to a project."
        listing={listing}
        action={
          writable && (
            <Button look="primary" onClick={() => setOpen({ dialog: "new" })}>
              <Icon name="plus" />
              New project
            </Button>
          )
        }
        empty={
          <EmptyState title="No projects">
            <p>{writable ? "Create one to group allocations." : "An admin or owner can create one."}</p>
          </EmptyState>
        }
      >
        {(projects) => (
          <Table
            label="Projects"
            columns={["Name", "Slug", "Created", ...(writable ? [<ActionsHeader key="actions" />] : [])]}
          >
            {projects.map((project) => (
              <tr key={project.id}>
                <Cell className="min-w-40 font-medium">{project.name}</Cell>
                <Cell className="font-mono text-sm whitespace-nowrap text-ink-muted">{project.slug}</Cell>
                <Cell className="text-ink-muted">
                  <When at={project.created_at} />
                </Cell>
                {writable && (
                  <RowMenu label={`Actions for project ${project.name}`}>
                    <MenuItem onClick={() => setOpen({ dialog: "rename", project })}>Rename</MenuItem>
                    <MenuItem danger onClick={() => setOpen({ dialog: "delete", project })}>
                      Delete
                    </MenuItem>
                  </RowMenu>
                )}
              </tr>
            ))}
          </Table>
        )}
      </TabFrame>
      {open?.dialog === "new" && <NewProjectDialog onClose={close} />}
      {open?.dialog === "rename" && <RenameProjectDialog project={open.project} onClose={close} />}
      {open?.dialog === "delete" && <DeleteProjectDialog project={open.project} onClose={close} />}
    </>
  );
}
