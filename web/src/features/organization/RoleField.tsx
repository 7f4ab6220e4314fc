// Selects a role: only those that the person's own role may assign.

import { mayGrant, type Role, roles } from "@holdfast/contracts/public/permissions";
import { SelectField } from "../../design/forms/Field.tsx";
import { useActing } from "../../session.ts";

const meanings: Record<Role, string> = {
  owner: "Full control, including the organization's name and other owners.",
  admin: "Projects, nodes, members and the audit trail, but not owners.",
  member: "View the organization, use allocations and create their own API tokens.",
};

type RoleFieldProps = { value: Role; onChange: (role: Role) => void };

export function RoleField({ value, onChange }: RoleFieldProps) {
  const { org } = useActing();
  return (
    <SelectField
      label="Role"
      value={value}
      hint={meanings[value]}
      onChange={(event) => onChange(event.currentTarget.value as Role)}
    >
      {roles
        .filter((role) => mayGrant(org.role, role))
        .map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
    </SelectField>
  );
}
