// A member of the organization, to choose.

import { listMembers, type Member } from "@holdfast/contracts/endpoints/members";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { SelectField } from "../../design/Field.tsx";
import { useActing } from "../../session.ts";

type MemberFieldProps = {
  label: string;
  hint?: ReactNode;
  value: string;
  onChange: (userId: string) => void;
  /** Who can be chosen; left out, everybody. */
  offers?: (member: Member) => boolean;
  /** What the empty choice means; left out, somebody has to be chosen. */
  nobody?: string;
};

export function MemberField({ label, hint, value, onChange, offers = () => true, nobody }: MemberFieldProps) {
  const members = useMembers().filter(offers);
  return (
    <SelectField
      label={label}
      hint={hint}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      required={nobody === undefined}
    >
      <option value="">{nobody ?? (members.length > 0 ? "Choose a member" : "There is no other member")}</option>
      {members.map((member) => (
        <option key={member.user_id} value={member.user_id}>
          {member.name} ({member.email})
        </option>
      ))}
    </SelectField>
  );
}

/** All of them, by name. */
function useMembers(): Member[] {
  const { org, call } = useActing();
  const all = useQuery({
    queryKey: ["org", org.id, "members", "choice"],
    queryFn: async ({ signal }) => {
      const members: Member[] = [];
      let cursor: string | undefined;
      do {
        const page = await call(listMembers, { query: { cursor, limit: 200 }, signal });
        members.push(...page.items);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
      return members.toSorted((a, b) => a.name.localeCompare(b.name));
    },
  });
  return all.data ?? [];
}
