// Mail by SMTP.

import { AnyText } from "@holdfast/contracts/fields";
import { z } from "zod";
import { connector } from "../connector.ts";
import { Line } from "../forms.ts";

const Address = Line.max(254).regex(/^[^\s<>()[\],;:"@]+@[^\s<>()[\],;:"@]+$/, "an email address");

export default connector({
  name: "email",
  title: "Email",
  summary: "Mail by SMTP",
  usesNetwork: true,
  actions: {
    send: {
      summary: "Send a mail; its Message-ID is the same for every attempt",
      effect: "at-most-once",
      secret: { required: false, what: "the password of `server.user`" },
      input: z.strictObject({
        server: z
          .strictObject({
            host: Line.min(1)
              .max(253)
              .regex(/^[A-Za-z0-9._:-]+$/, "a host name"),
            port: z.int().min(1).max(65_535).optional().describe("Default: 465 with tls, otherwise 587."),
            tls: z.enum(["tls", "starttls", "none"]).optional().describe("Default: starttls."),
            user: Line.min(1).max(254).optional().describe("Signs in with the secret as its password."),
          })
          .describe("The mail server."),
        from: Address,
        to: z.array(Address).min(1).max(50),
        cc: z.array(Address).max(50).optional(),
        subject: Line.min(1).max(500),
        text: AnyText.min(1).max(200_000),
      }),
      output: z.strictObject({
        messageId: z.string(),
        accepted: z.array(z.string()),
        rejected: z.array(z.string()).describe("Recipients that the server refused."),
      }),
    },
  },
});
