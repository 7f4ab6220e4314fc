// The owner of an allocation, as text.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { useMe } from "../../session.ts";

export function OwnerName({ owner }: Pick<Allocation, "owner">) {
  const me = useMe();
  if (!owner) return <span className="text-ink-muted">none</span>;
  return (
    <>
      {owner.name}
      {owner.id === me.id && <span className="text-ink-muted"> (you)</span>}
      {!owner.active && (
        <span className="block text-sm text-degraded">
          {owner.type === "user" ? "no longer a member" : "token no longer valid"}
        </span>
      )}
    </>
  );
}
