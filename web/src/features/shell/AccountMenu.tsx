// Who is signed in: their account, the theme, and the way out.

import { signOut } from "@holdfast/contracts/endpoints/sign-in";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { call } from "../../api.ts";
import { Icon } from "../../design/controls/Icon.tsx";
import { Menu, MenuChoice, MenuItem, MenuSeparator } from "../../design/controls/Menu.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { useMe } from "../../session.ts";
import { chooseTheme, type Theme, useTheme } from "../../theme.ts";

const themes: { value: Theme; content: string }[] = [
  { value: "system", content: "System" },
  { value: "light", content: "Light" },
  { value: "dark", content: "Dark" },
];

export function AccountMenu() {
  const me = useMe();
  const theme = useTheme();
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const leave = useMutation({
    mutationFn: () => call(signOut, {}),
    onSuccess: async () => {
      await navigate({ to: "/sign-in" });
      queryClient.clear();
    },
    onError: () => toast("Sign-out failed. You are still signed in.", "failed"),
  });
  return (
    <Menu side="top" trigger={<AccountButton name={me.name} email={me.email} />}>
      <MenuItem onClick={() => void navigate({ to: "/account" })}>
        <Icon name="person" />
        Account
      </MenuItem>
      <MenuSeparator />
      <MenuChoice label="Theme" value={theme} onChoose={chooseTheme} choices={themes} />
      <MenuSeparator />
      <MenuItem onClick={() => leave.mutate()}>
        <span className="size-4" />
        Sign out
      </MenuItem>
    </Menu>
  );
}

function AccountButton({ name, email, ...rest }: { name: string; email: string | null }) {
  return (
    <button
      type="button"
      {...rest}
      className="flex w-full items-center gap-3 rounded-md px-2.5 py-1.5 text-left transition-colors hover:bg-deep-hover data-popup-open:bg-deep-hover"
    >
      <Icon name="person" className="size-4 shrink-0 text-on-deep-muted" />
      <span className="min-w-0 flex-1">
        <span className="block truncate">
          <span className="sr-only">Account: </span>
          {name}
        </span>
        {email && <span className="block truncate text-xs text-on-deep-muted">{email}</span>}
      </span>
      <Icon name="upDown" className="size-4 shrink-0 text-on-deep-muted" />
    </button>
  );
}
