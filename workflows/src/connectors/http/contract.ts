// Requests to any HTTP server.

import { AnyText } from "@holdfast/contracts/fields";
import { z } from "zod";
import { connector } from "../connector.ts";
import { HttpsUrl, Line } from "../forms.ts";

const HeaderName = Line.min(1)
  .max(256)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "the name of a header");
/** These belong to the connection, or to the credentials. */
const OwnHeader = HeaderName.refine(
  (name) =>
    !/^(authorization|proxy-authorization|host|connection|content-length|transfer-encoding|upgrade|te|trailer|idempotency-key)$/i.test(
      name,
    ),
  "is set by the connector",
);
const Headers = z
  .record(OwnHeader, Line.max(8_192))
  .refine((all) => Object.keys(all).length <= 50, "at most 50 headers")
  .describe("Headers, beside those that the connector sets.");
const Auth = z
  .discriminatedUnion("scheme", [
    z.strictObject({ scheme: z.literal("bearer") }),
    z.strictObject({
      scheme: z.literal("basic"),
      user: Line.min(1)
        .max(256)
        .regex(/^[^:]*$/, "must not contain a colon"),
    }),
    z.strictObject({ scheme: z.literal("header"), header: OwnHeader }),
  ])
  .describe("How the secret is sent: `bearer` (default), `basic` with a user, or in a `header` of its own.");
const anyStatus = z
  .boolean()
  .optional()
  .describe("Any status is a success, and the workflow decides by it. Default: only 200 to 299.");
const secret = { required: false, what: "a token or password, sent as `auth` says" };
const Answer = z.strictObject({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.unknown().describe("Parsed, if the response says that it is JSON."),
});
const shared = { url: HttpsUrl, headers: Headers.optional(), auth: Auth.optional(), anyStatus };

export default connector({
  name: "http",
  title: "HTTP",
  summary: "Requests to any HTTP server",
  usesNetwork: true,
  actions: {
    get: {
      summary: "Read a URL",
      effect: "idempotent",
      secret,
      input: z.strictObject(shared),
      output: Answer,
    },
    request: {
      summary: "Send a request, with an Idempotency-Key",
      effect: "at-most-once",
      secret,
      input: z
        .strictObject({
          method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
          ...shared,
          text: AnyText.max(400_000).optional().describe("The body as it is."),
          json: z.unknown().optional().describe("The body, sent as JSON. Not together with `text`."),
        })
        .refine((input) => input.text === undefined || input.json === undefined, "use only one of text and json"),
      output: Answer,
    },
  },
});
