// What can still be used to enroll or recover a node, such as enrollment tokens. Renders nothing while there is none.

import { useId } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ActionsHeader, Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { TimeLeft, When } from "../../design/values/When.tsx";

type Credential = { id: string; expires_at: string; created_at: string; created_by: string };

type OpenCredentialsProps<One extends Credential> = {
  title: string;
  open: readonly One[] | undefined;
  purposeOf: (one: One) => string;
  onRevoke: (one: One) => void;
};

export function OpenCredentials<One extends Credential>(props: OpenCredentialsProps<One>) {
  const { title, open = [], purposeOf, onRevoke } = props;
  const id = useId();
  if (open.length === 0) return null;
  return (
    <section className="mt-10" aria-labelledby={id}>
      <h2 id={id} className="mb-3 text-lg font-semibold">
        {title}
      </h2>
      <Table
        label={title}
        columns={[
          "For",
          "Expires in",
          { wide: "Created" },
          { wide: "Created by" },
          <ActionsHeader key="actions" />,
        ]}
      >
        {open.map((one) => (
          <tr key={one.id}>
            <Cell>{purposeOf(one)}</Cell>
            <Cell>
              <TimeLeft until={one.expires_at} />
            </Cell>
            <Cell className={`${wideOnly} text-ink-muted`}>
              <When at={one.created_at} />
            </Cell>
            <Cell className={`${wideOnly} max-w-52 truncate text-ink-muted`}>{one.created_by}</Cell>
            <Cell className="w-0 px-2 py-0 text-right">
              <Button look="quiet" onClick={() => onRevoke(one)}>
                Revoke
              </Button>
            </Cell>
          </tr>
        ))}
      </Table>
    </section>
  );
}
