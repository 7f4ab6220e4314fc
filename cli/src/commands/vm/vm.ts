// holdfast vm: a command in a fresh VM, and the console of a VM that runs.

import { Command } from "commander";
import { addConsole } from "./console.ts";
import { addRunInVm } from "./run.ts";

export function vmCommand(): Command {
  const vm = new Command("vm").description("consoles of VMs, and commands in fresh ones");
  addRunInVm(vm);
  addConsole(vm);
  return vm;
}
