// The secrets of the organization: their names, who may use them, and what did. Values are typed here and never shown.

import type { Secret } from "@holdfast/contracts/endpoints/secrets";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useActing } from "../../session.ts";
import { DeleteSecretDialog } from "./DeleteSecretDialog.tsx";
import { NewKeyDialog } from "./NewKeyDialog.tsx";
import { useSecrets } from "./queries.ts";
import { SecretTable } from "./SecretTable.tsx";
import { SetSecretDialog } from "./SetSecretDialog.tsx";
import { UsedByDialog } from "./UsedByDialog.tsx";

type Opened = { what: "set" | "key" | "use" | "delete"; secret: Secret } | { what: "new" };

export function SecretsPage() {
  const { org, may } = useActing();
  const { data, error, refetch } = useSecrets();
  const [opened, setOpened] = useState<Opened | null>(null);
  const close = () => setOpened(null);
  const writable = may("secrets:write");
  const add = writable && (
    <Button look="primary" onClick={() => setOpened({ what: "new" })}>
      <Icon name="plus" />
      New secret
    </Button>
  );
  return (
    <>
      <PageHeader title="Secrets" actions={add || undefined}>
        Values that steps of {org.name} get by name. They are encrypted, every use is in the audit, and nobody can
        read them again.
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what="secrets" />}
      {data?.length === 0 && (
        <EmptyState
          icon={<Icon name="secrets" />}
          title={writable ? "No secrets yet" : "No secrets that you may use"}
          actions={add || undefined}
        >
          <p>
            {writable
              ? "Store a password or a key once, and name it in the dispatch of a step."
              : "An admin or owner of the organization can create secrets, and allow members to use them."}
          </p>
        </EmptyState>
      )}
      {data && data.length > 0 && (
        <SecretTable secrets={data} writable={writable} onOpen={(what, secret) => setOpened({ what, secret })} />
      )}
      {opened?.what === "new" && <SetSecretDialog onClose={close} />}
      {opened?.what === "set" && <SetSecretDialog secret={opened.secret} onClose={close} />}
      {opened?.what === "key" && <NewKeyDialog secret={opened.secret} onClose={close} />}
      {opened?.what === "use" && <UsedByDialog secret={opened.secret} onClose={close} />}
      {opened?.what === "delete" && <DeleteSecretDialog secret={opened.secret} onClose={close} />}
    </>
  );
}
