// States of controllers and their builds as shapes and titles.

import type { JenkinsBuildState, JenkinsControllerState } from "@holdfast/contracts/endpoints/jenkins";
import { jenkinsBuildStateTitles, jenkinsControllerStateTitles } from "@holdfast/contracts/words/vm-titles";
import { marksOf } from "../../design/values/marks.ts";

export const controllerMarks = marksOf<JenkinsControllerState>(jenkinsControllerStateTitles, {
  unpolled: "unknown",
  working: "ok",
  failing: "degraded",
  refused: "failed",
  disabled: "ended",
});

export const buildMarks = marksOf<JenkinsBuildState>(jenkinsBuildStateTitles, {
  claimed: "moving",
  launching: "moving",
  connected: "ok",
  building: "ok",
  removing: "moving",
  ended: "ended",
});
