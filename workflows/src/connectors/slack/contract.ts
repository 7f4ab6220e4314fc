// Slack: its Web API, and incoming webhooks.

import { AnyText } from "@holdfast/contracts/fields";
import { z } from "zod";
import { connector } from "../connector.ts";
import { BaseUrl, Line } from "../forms.ts";

const text = AnyText.min(1).max(40_000).describe("The message; with `blocks`, what notifications show.");
const blocks = z.array(z.unknown()).max(50).optional().describe("Blocks of Slack's Block Kit.");

export default connector({
  name: "slack",
  title: "Slack",
  summary: "Messages to channels",
  usesNetwork: true,
  actions: {
    "message.post": {
      summary: "Post a message (chat.postMessage)",
      effect: "at-most-once",
      secret: { required: true, what: "a bot token (xoxb-…) with the scope chat:write" },
      input: z.strictObject({
        channel: Line.min(1).max(80).describe("Id or #name of the channel."),
        text,
        blocks,
        threadTs: Line.regex(/^\d{1,12}\.\d{1,9}$/, "a timestamp such as 1700000000.000100")
          .optional()
          .describe("Timestamp of the message to reply to."),
        baseUrl: BaseUrl.optional().describe("Default: https://slack.com/api."),
      }),
      output: z.strictObject({ channel: z.string(), ts: z.string().describe("Its timestamp, which is its id.") }),
    },
    "webhook.post": {
      summary: "Post a message to an incoming webhook",
      effect: "at-most-once",
      secret: { required: true, what: "the URL of the incoming webhook" },
      input: z.strictObject({ text, blocks }),
      output: z.strictObject({ posted: z.literal(true) }),
    },
  },
});
