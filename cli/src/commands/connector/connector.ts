// holdfast connector: what steps of workflows can do at other services. Needs no server.

import { Command } from "commander";
import { addList } from "./list.ts";
import { addShow } from "./show.ts";
import { addTry } from "./try.ts";

export function connectorCommand(): Command {
  const connector = new Command("connector").description("connectors of workflows: actions at other services");
  addList(connector);
  addShow(connector);
  addTry(connector);
  return connector;
}
