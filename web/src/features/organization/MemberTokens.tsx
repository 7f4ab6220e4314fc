// The tokens that end when a member is removed, or when their new role no longer allows them.

import { listMemberTokens, type Member } from "@holdfast/contracts/endpoints/members";
import { countIssued } from "@holdfast/contracts/public/issued-tokens";
import type { Role } from "@holdfast/contracts/public/permissions";
import { useQuery } from "@tanstack/react-query";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { useActing } from "../../session.ts";
import { NodesThatRejoin } from "./NodesThatRejoin.tsx";

export function MemberTokens({ member, role }: { member: Member; role?: Role }) {
  const { org, call } = useActing();
  const tokens = useQuery({
    queryKey: ["org", org.id, "members", member.user_id, "tokens", role ?? "removed"],
    queryFn: ({ signal }) =>
      call(listMemberTokens, { params: { user_id: member.user_id }, query: role ? { role } : {}, signal }),
    staleTime: 0,
  });
  if (tokens.error) return <ErrorNotice error={tokens.error} />;
  if (!tokens.data) return <Loading what="their tokens" />;
  const { items } = tokens.data;
  if (items.length === 0) return <p>No tokens are affected.</p>;
  return (
    <div className="space-y-3">
      <p>
        This ends what {member.name} made: <strong className="text-ink">{countIssued(items)}</strong>.
      </p>
      <NodesThatRejoin tokens={items} />
    </div>
  );
}
