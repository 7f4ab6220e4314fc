// Chooses the organization to act in. Operators may act in every one, and make new ones.

import { useState } from "react";
import { Icon } from "../../design/controls/Icon.tsx";
import { Menu, MenuChoice, MenuItem, MenuSeparator } from "../../design/controls/Menu.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { chooseOrganization, type Membership, useMe, useMembership } from "../../session.ts";
import { NewOrganizationDialog } from "./NewOrganizationDialog.tsx";

export function OrganizationSwitcher() {
  const me = useMe();
  const current = useMembership();
  const [creating, setCreating] = useState(false);
  const choose = (id: string) => {
    chooseOrganization(id);
    const chosen = me.organizations.find((each) => each.id === id);
    if (chosen && id !== current?.id) toast(`Switched to ${chosen.name}`);
  };
  return (
    <>
      <Menu trigger={<SwitcherButton current={current} />}>
        {me.organizations.length > 0 && (
          <MenuChoice
            label="Organizations"
            value={current?.id ?? ""}
            onChoose={choose}
            choices={me.organizations.map((each) => ({
              value: each.id,
              content: (
                <span className="flex min-w-0 flex-1 items-baseline justify-between gap-4">
                  <span className="truncate">{each.name}</span>
                  <span className="text-xs text-ink-muted">{each.role}</span>
                </span>
              ),
            }))}
          />
        )}
        {me.operator && (
          <>
            <MenuSeparator />
            <MenuItem onClick={() => setCreating(true)}>
              <Icon name="plus" />
              New organization
            </MenuItem>
          </>
        )}
      </Menu>
      <NewOrganizationDialog open={creating} onClose={() => setCreating(false)} />
    </>
  );
}

function SwitcherButton({ current, ...rest }: { current: Membership | undefined }) {
  return (
    <button
      type="button"
      {...rest}
      className="flex w-full items-center gap-2.5 rounded-md border border-deep-line px-2.5 py-2 text-left transition-colors hover:bg-deep-hover data-popup-open:bg-deep-hover"
    >
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{current?.name ?? "No organization"}</span>
        <span className="block text-xs text-on-deep-muted">{current?.role ?? "ask an owner to invite you"}</span>
        <span className="sr-only">. Switch organization</span>
      </span>
      <Icon name="upDown" className="size-4 shrink-0 text-on-deep-muted" />
    </button>
  );
}
