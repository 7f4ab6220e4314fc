// What the action of the connector email sends. The Message-ID follows from the idempotency key, so that a repetition can be recognised.

import { createHash } from "node:crypto";
import { ConnectorFailure, mailActions } from "../actions.ts";
import type contract from "./contract.ts";

export default mailActions<typeof contract>({
  send: {
    message({ server, from, to, cc = [], subject, text }, { secret, idempotencyKey }) {
      const { host, tls = "starttls", port = tls === "tls" ? 465 : 587, user } = server;
      if (user !== undefined && secret === undefined)
        throw new ConnectorFailure("secret_missing", "It is the password of server.user.");
      const id = createHash("sha256").update(idempotencyKey).digest("hex").slice(0, 32);
      return {
        ...{ kind: "mail", server: { host, port, tls, user }, password: secret },
        ...{ from, to, cc, subject, text, messageId: `<${id}@${from.split("@").at(-1)}>` },
      };
    },
    read: ({ messageId, accepted, rejected }) => ({ messageId, accepted, rejected }),
  },
});
