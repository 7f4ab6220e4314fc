// The node's certificate: how long it is valid, and whether it is renewed in time.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { classes } from "../../design/controls/classes.ts";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { exactTime } from "../../design/values/time.ts";
import { useNow } from "../../design/values/use-now.ts";
import { When } from "../../design/values/When.tsx";
import { type Validity, validityOf } from "./validity.ts";

export function CertificateCard({ node }: { node: NodeDetail }) {
  const now = useNow("quarter minutes");
  const { certificate, recovery_token: token, profile } = node;
  const validity = certificate && validityOf(certificate, now);
  return (
    <Card title="Identity" note={validity && <StatusMark state={validity.state}>{validity.word}</StatusMark>}>
      {certificate && validity ? (
        <>
          <div className="px-5 pt-4 pb-2">
            <Bar validity={validity} />
            <div className="mt-1.5 flex justify-between gap-4 font-mono text-xs text-ink-muted">
              <span>{exactTime(certificate.not_before).slice(0, 16)}</span>
              <span>{exactTime(certificate.not_after).slice(0, 16)}</span>
            </div>
          </div>
          <Facts className="px-5 py-1">
            {certificate.revoked_at && (
              <Fact name="Revoked">
                <When at={certificate.revoked_at} />
              </Fact>
            )}
            <Fact name="Expires">
              <When at={certificate.not_after} />
            </Fact>
            {certificate.renewal_due_at && !certificate.revoked_at && (
              <Fact name="Renewal due">
                <When at={certificate.renewal_due_at} />
                <span className="text-ink-muted">, automatic, with a new key</span>
              </Fact>
            )}
            {!certificate.revoked_at && (
              <Fact name="Recovery token">
                {token ? (
                  <>
                    works until <When at={token.expires_at} />
                    <span className="text-ink-muted">, replaced every hour</span>
                  </>
                ) : (
                  <span className="text-ink-muted">
                    none confirmed by the node; without one it cannot recover by itself
                  </span>
                )}
              </Fact>
            )}
            <Fact name="Serial">
              <CopyableId id={certificate.serial} label="Copy serial" />
            </Fact>
            <Fact name="Profile">
              {profile ? `${profile.name}, version ${profile.version}` : "not received yet"}
            </Fact>
            <Fact name="Node id">
              <CopyableId id={node.id} label="Copy node id" />
            </Fact>
          </Facts>
        </>
      ) : (
        <p className="px-5 py-4 text-ink-muted">This node has no certificate.</p>
      )}
    </Card>
  );
}

const fills: Partial<Record<State, string>> = { ok: "bg-ok", degraded: "bg-degraded", failed: "bg-failed" };

/** The elapsed part is filled; the tick marks when renewal is due. The text beside it says the same. */
function Bar({ validity }: { validity: Validity }) {
  const percent = (share: number) => `${share * 100}%`;
  return (
    <div className="relative h-2 rounded-sm bg-sunken" aria-hidden="true">
      <div
        className={classes("h-full rounded-sm opacity-70", fills[validity.state])}
        style={{ width: percent(validity.passed) }}
      />
      {validity.renewalAt !== null && (
        <div className="absolute -inset-y-1 w-0.5 bg-ink" style={{ left: percent(validity.renewalAt) }} />
      )}
    </div>
  );
}
