// The actions of one row of a table.

import type { ReactNode } from "react";
import { IconButton } from "../controls/Button.tsx";
import { Icon } from "../controls/Icon.tsx";
import { Menu } from "../controls/Menu.tsx";
import { Cell } from "./Table.tsx";

export function RowMenu({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Cell className="sticky right-0 w-0 bg-surface px-2 py-0">
      <Menu
        align="end"
        trigger={
          <IconButton label={label}>
            <Icon name="more" />
          </IconButton>
        }
      >
        {children}
      </Menu>
    </Cell>
  );
}
