// The state of a delivery as shape and title, and its event in words.

import type { DeliveryState } from "@holdfast/contracts/endpoints/notify";
import { deliveryStateTitles } from "@holdfast/contracts/words/state-titles";
import { marksOf } from "../../design/values/marks.ts";

export const deliveryMarks = marksOf<DeliveryState>(deliveryStateTitles, {
  pending: "moving",
  delivered: "ok",
  failed: "failed",
  cancelled: "ended",
});
