// holdfast host rotate-token: a new bootstrap token for a host; those that it had are revoked. The agent keeps its identity: the
// token matters again when that is lost.

import type { Client } from "@holdfast/contracts/client";
import {
  createEnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";

export function addRotateToken(host: Command): void {
  withServerOptions(host.command("rotate-token"))
    .description("create a new bootstrap token for a host, and revoke those that it had")
    .argument("<host>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name } = await findNode(client, wanted);
      // First the new one: if the command is interrupted, the host still has a token that works.
      const created = await client(createEnrollmentToken, { body: { kind: "bootstrap", node_id: id } });
      const revoked = await revokeOthers(client, { nodeId: id, keep: created.id });
      const result = { host_id: id, name, token: created.token, expires_at: created.expires_at, revoked };
      printResult(options, result, () =>
        [
          `New bootstrap token of ${name}; ${revoked} earlier ${revoked === 1 ? "token is" : "tokens are"} revoked. It is shown only once:`,
          `NODE_AGENT_BOOTSTRAP_TOKEN=${created.token}`,
          `On ${name}, put this line into /etc/jenkins-qemu-node-agent/env (or /etc/holdfast/agent.env), then restart the agent:`,
          "  systemctl restart jenkins-qemu-node-agent     (DragonFlyBSD: service jenkins_qemu_node_agent restart)",
        ].join("\n"),
      );
    });
}

async function revokeOthers(client: Client, { nodeId, keep }: { nodeId: string; keep: string }): Promise<number> {
  let revoked = 0;
  for (let cursor: string | undefined; ; ) {
    const page = await client(listEnrollmentTokens, { query: { cursor, limit: 200 } });
    for (const { id, kind, node_id, revoked_at } of page.items) {
      if (kind !== "bootstrap" || node_id !== nodeId || id === keep || revoked_at !== null) continue;
      await client(revokeEnrollmentToken, { params: { token_id: id } });
      revoked += 1;
    }
    if (page.next_cursor === null) return revoked;
    cursor = page.next_cursor;
  }
}
