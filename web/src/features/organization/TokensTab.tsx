// API tokens: for the command line, CI and scripts.

import { type ApiToken, listTokens } from "@holdfast/contracts/endpoints/tokens";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { MenuItem } from "../../design/controls/Menu.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useListing } from "../../listing.ts";
import { useActing } from "../../session.ts";
import { NewTokenDialog } from "./NewTokenDialog.tsx";
import { RevokeTokenDialog } from "./RevokeTokenDialog.tsx";
import { TabFrame } from "./TabFrame.tsx";
import { tokenState } from "./token-state.ts";

export function TokensTab() {
  const { org, call, may } = useActing();
  const listing = useListing<ApiToken>({
    key: ["org", org.id, "tokens"],
    page: ({ cursor, signal }) => call(listTokens, { query: { cursor }, signal }),
  });
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiToken | null>(null);
  const own = org.role === "member";
  const writable = may("tokens:write");
  const create = writable && (
    <Button look="primary" onClick={() => setCreating(true)}>
      <Icon name="plus" />
      New token
    </Button>
  );
  return (
    <>
      <TabFrame
        title="API tokens"
        intro={own ? "Your own tokens in this organization." : "All tokens of this organization."}
        listing={listing}
        action={create}
        empty={
          <EmptyState title="No API tokens yet">
            <p>
              A token lets the command line, CI or a script act in {org.name}. Send it as{" "}
              <Code>authorization: Bearer hft_…</Code>
            </p>
          </EmptyState>
        }
      >
        {(tokens) => (
          <Table
            label="API tokens"
            columns={[
              "Name",
              "Access",
              "State",
              "Last used",
              "Expires",
              "Created by",
              <ActionsHeader key="actions" />,
            ]}
          >
            {tokens.map((token) => (
              <TokenRow key={token.id} token={token} onRevoke={writable ? () => setRevoking(token) : undefined} />
            ))}
          </Table>
        )}
      </TabFrame>
      {creating && <NewTokenDialog onClose={() => setCreating(false)} />}
      {revoking && <RevokeTokenDialog token={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}

function TokenRow({ token, onRevoke }: { token: ApiToken; onRevoke?: () => void }) {
  const { state, word, usable } = tokenState(token, Date.now());
  return (
    <tr className={usable ? undefined : "text-ink-muted"}>
      <Cell className="min-w-40 font-medium">{token.name}</Cell>
      <Cell className="text-sm whitespace-nowrap">
        {token.scopes ? (
          <span title={token.scopes.join(", ")}>
            {token.role}, {token.scopes.length} {token.scopes.length === 1 ? "scope" : "scopes"}
          </span>
        ) : (
          `all scopes of ${token.role}`
        )}
      </Cell>
      <Cell>
        <StatusMark state={state}>{word}</StatusMark>
      </Cell>
      <Cell className="text-ink-muted">{token.last_used_at ? <When at={token.last_used_at} /> : "Never"}</Cell>
      <Cell className="text-ink-muted">{token.expires_at ? <When at={token.expires_at} /> : "Never"}</Cell>
      <Cell className="max-w-52 truncate text-ink-muted">{token.created_by}</Cell>
      {usable && onRevoke ? (
        <RowMenu label={`Actions for token ${token.name}`}>
          <MenuItem danger onClick={onRevoke}>
            Revoke
          </MenuItem>
        </RowMenu>
      ) : (
        <Cell />
      )}
    </tr>
  );
}
