// Words for the outcomes of a preflight. No schema library here: pages read it too.

import type { PreflightState } from "../endpoints/preflights.ts";
import type { PreflightOmission, PreflightVantage } from "../preflight/checks.ts";
import type { PreflightResult, PreflightStatus } from "../preflight/report.ts";
import type { StateTitle } from "./state-titles.ts";

export const preflightStatusTitles: Record<PreflightStatus, StateTitle> = {
  passed: { title: "Passed", meaning: "The hop works." },
  failed: { title: "Failed", meaning: "The hop does not work." },
  not_run: { title: "Not run", meaning: "The hop was not checked." },
};

export const preflightResultTitles: Record<PreflightResult, StateTitle> = {
  ready: { title: "Ready", meaning: "Every requested hop was checked and works." },
  failed: { title: "Failed", meaning: "A hop does not work." },
  incomplete: { title: "Not proved", meaning: "Nothing failed, and a requested hop could not be checked." },
};

export const preflightStateTitles: Record<PreflightState, StateTitle> = {
  running: { title: "Running", meaning: "Hops are being checked." },
  finished: { title: "Finished", meaning: "The report is complete." },
  interrupted: { title: "Interrupted", meaning: "The api that ran it stopped." },
};

export const preflightVantageTitles: Record<PreflightVantage, string> = {
  control_plane: "control plane",
  command_line: "command line",
  node: "node",
  gateway: "gateway",
};

export const preflightWhyTitles: Record<PreflightOmission, string> = {
  after_failure: "after failure",
  not_requested: "not requested",
  no_evidence: "no evidence",
  no_time: "no time left",
};
