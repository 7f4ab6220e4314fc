// Offers to revoke the person's tokens too, with their number by kind and the nodes that depend on them.

import { listMyTokens } from "@holdfast/contracts/endpoints/sessions";
import { countIssued } from "@holdfast/contracts/public/issued-tokens";
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api.ts";
import { Checkbox } from "../../design/forms/Field.tsx";
import { NodesThatRejoin } from "../organization/NodesThatRejoin.tsx";

type RevokeTokensFieldProps = { checked: boolean; onChange: (checked: boolean) => void };

/** Renders nothing while there is no token to revoke. */
export function RevokeTokensField({ checked, onChange }: RevokeTokensFieldProps) {
  const tokens = useQuery({
    queryKey: ["me", "tokens"],
    queryFn: ({ signal }) => call(listMyTokens, { signal }),
    staleTime: 0,
  });
  const items = tokens.data?.items ?? [];
  if (items.length === 0) return null;
  return (
    <div className="space-y-3 text-ink">
      <Checkbox
        label={`Also revoke what I made: ${countIssued(items)}`}
        hint="In all organizations. Recommended if someone else may have had access to your account."
        checked={checked}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {checked && <NodesThatRejoin tokens={items} />}
    </div>
  );
}
