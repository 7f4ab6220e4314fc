// Selects a member of the organization.

import { listMembers } from "@holdfast/contracts/endpoints/members";
import type { Role } from "@holdfast/contracts/public/permissions";
import type { ComponentProps } from "react";
import { FOUND_AT_ONCE, Picker } from "../../design/forms/Picker.tsx";
import { useActing } from "../../session.ts";

type MemberFieldProps = {
  /** Only members of this role; left out, everybody. */
  ofRole?: Role;
  /** Not this one. */
  except?: string | null | undefined;
} & Pick<ComponentProps<typeof Picker>, "label" | "hint" | "value" | "onChange" | "none">;

export function MemberField({ ofRole, except, ...rest }: MemberFieldProps) {
  const { org, call } = useActing();
  return (
    <Picker
      {...rest}
      noun="member"
      queryKey={["org", org.id, "members", "choice", { ofRole, except }]}
      find={async (text, signal) => {
        const query = {
          ...(text ? { search: text } : {}),
          ...(ofRole ? { role: ofRole } : {}),
          limit: FOUND_AT_ONCE,
        };
        const { items, next_cursor } = await call(listMembers, { query, signal });
        const options = items
          .filter(({ user_id }) => user_id !== except)
          .map(({ user_id, name, email }) => ({ id: user_id, label: name, detail: email }));
        return { options, hasMore: next_cursor !== null };
      }}
    />
  );
}
