// Creates an API token and shows its secret once.

import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { type Role, type Scope, scopesOfRole } from "@holdfast/contracts/public/permissions";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { ShownOnceDialog } from "../../design/dialogs/ShownOnceDialog.tsx";
import { Checkbox, SelectField, TextField } from "../../design/forms/Field.tsx";
import { useChange } from "../../use-change.ts";
import { RoleField } from "./RoleField.tsx";

const lifetimes = [
  { days: 30, label: "30 days" },
  { days: 90, label: "90 days" },
  { days: 365, label: "1 year" },
  { days: undefined, label: "Until revoked" },
];

export function NewTokenDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("member");
  const [days, setDays] = useState<number | undefined>(90);
  const [narrowed, setNarrowed] = useState<ReadonlySet<Scope> | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const create = useChange({
    send: (call, idempotencyKey) =>
      call(createToken, {
        body: {
          name,
          role,
          ...(narrowed ? { scopes: [...narrowed] } : {}),
          ...(days ? { expires_in_days: days } : {}),
        },
        idempotencyKey,
      }),
    onDone: (token) => setSecret(token.token),
  });
  if (secret) {
    return (
      <ShownOnceDialog onClose={onClose} title={`Token ${name}`} label="API token" value={secret}>
        Only its hash is stored. If you lose it, revoke it and create another.
      </ShownOnceDialog>
    );
  }
  return (
    <FormDialog open onClose={onClose} title="New API token" action="Create token" mutation={create}>
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        hint="Where it is used, for example the host or job."
        placeholder="deploy on build-3"
        maxLength={80}
        autoComplete="off"
        required
      />
      <div className="grid gap-5 sm:grid-cols-2">
        <RoleField
          value={role}
          onChange={(next) => {
            setRole(next);
            if (narrowed) setNarrowed(new Set([...narrowed].filter((scope) => scopesOfRole[next].has(scope))));
          }}
        />
        <SelectField
          label="Expires"
          value={days ?? ""}
          onChange={(event) => setDays(Number(event.currentTarget.value) || undefined)}
        >
          {lifetimes.map((lifetime) => (
            <option key={lifetime.label} value={lifetime.days ?? ""}>
              {lifetime.label}
            </option>
          ))}
        </SelectField>
      </div>
      <ScopeFields role={role} narrowed={narrowed} onChange={setNarrowed} />
    </FormDialog>
  );
}

type ScopeFieldsProps = {
  role: Role;
  /** Null: all that the role allows. */
  narrowed: ReadonlySet<Scope> | null;
  onChange: (narrowed: ReadonlySet<Scope> | null) => void;
};

function ScopeFields({ role, narrowed, onChange }: ScopeFieldsProps) {
  const toggle = (scope: Scope, on: boolean) => {
    const next = new Set(narrowed);
    if (on) next.add(scope);
    else next.delete(scope);
    onChange(next);
  };
  return (
    <fieldset>
      <legend className="mb-1.5 font-medium">Scopes</legend>
      <Checkbox
        label="All scopes of the role"
        checked={narrowed === null}
        onChange={(event) => onChange(event.currentTarget.checked ? null : new Set(scopesOfRole[role]))}
      />
      {narrowed && (
        <div className="mt-2 grid gap-1.5 rounded-md bg-sunken p-3 sm:grid-cols-2">
          {[...scopesOfRole[role]].map((scope, index) => (
            <Checkbox
              key={scope}
              label={<span className="font-mono text-sm">{scope}</span>}
              checked={narrowed.has(scope)}
              onChange={(event) => toggle(scope, event.currentTarget.checked)}
              required={index === 0 && narrowed.size === 0}
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}
