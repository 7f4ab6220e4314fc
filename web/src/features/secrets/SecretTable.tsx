// Secrets as rows, without values.

import type { Secret } from "@holdfast/contracts/endpoints/secrets";
import { MenuItem, MenuSeparator } from "../../design/controls/Menu.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { When } from "../../design/values/When.tsx";

type SecretTableProps = {
  secrets: readonly Secret[];
  writable: boolean;
  onOpen: (what: "set" | "key" | "use" | "delete", secret: Secret) => void;
};

export function SecretTable({ secrets, writable, onOpen }: SecretTableProps) {
  const columns = ["Name", "Version", { wide: "For steps of" }, "Used", <ActionsHeader key="actions" />];
  return (
    <Table label="Secrets" columns={columns}>
      {secrets.map((secret) => (
        <tr key={secret.id}>
          <Cell className="min-w-40">
            <span className="font-medium [overflow-wrap:anywhere]">{secret.name}</span>
            <span className="block text-sm text-ink-muted">
              set <When at={secret.changed_at} /> by {secret.changed_by}
            </span>
          </Cell>
          <Cell className="tabular-nums">{secret.version}</Cell>
          <Cell className={wideOnly}>{secret.members_may_use ? "All members" : "Owners and admins"}</Cell>
          <Cell>
            {secret.last_used_at === null ? (
              <span className="text-ink-muted">Never</span>
            ) : (
              <>
                <When at={secret.last_used_at} />
                <span className="block text-sm text-ink-muted tabular-nums">
                  {secret.uses} {secret.uses === 1 ? "execution" : "executions"}
                </span>
              </>
            )}
          </Cell>
          <RowMenu label={`Actions for secret ${secret.name}`}>
            <MenuItem onClick={() => onOpen("use", secret)}>Used by</MenuItem>
            {writable && (
              <>
                <MenuItem onClick={() => onOpen("set", secret)}>Replace value</MenuItem>
                <MenuItem onClick={() => onOpen("key", secret)}>New data key</MenuItem>
                <MenuSeparator />
                <MenuItem danger onClick={() => onOpen("delete", secret)}>
                  Delete
                </MenuItem>
              </>
            )}
          </RowMenu>
        </tr>
      ))}
    </Table>
  );
}
