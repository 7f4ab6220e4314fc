// holdfast notify receiver, test, history.

import { Command } from "commander";
import { addHistory } from "./history.ts";
import { addReceiver } from "./receiver.ts";
import { addTest } from "./test.ts";

export function notifyCommand(): Command {
  const notify = new Command("notify").description("messages about incidents to webhooks and by mail");
  addReceiver(notify);
  addTest(notify);
  addHistory(notify);
  return notify;
}
