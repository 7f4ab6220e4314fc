// Management, workload and user access: three marks, never one.

import type { LayerState, Layers } from "@holdfast/contracts/endpoints/drift";
import { layerStateTitles } from "@holdfast/contracts/words/state-titles";
import { marksOf } from "../../design/values/marks.ts";
import { StatusMark } from "../../design/values/StatusMark.tsx";

const marks = marksOf<LayerState>(layerStateTitles, {
  working: "ok",
  impaired: "degraded",
  recovering: "moving",
  unknown: "unknown",
});
const names = { management: "Management", workload: "Workload", access: "Access" } as const;

export function LayerMarks({ layers }: { layers: Layers }) {
  return (
    <ul aria-label="Layers" className="flex flex-wrap gap-x-4 gap-y-0.5 text-sm">
      {(Object.keys(names) as (keyof Layers)[]).map((layer) => {
        const { state, word, meaning } = marks[layers[layer]];
        return (
          <li key={layer} title={meaning} className="inline-flex items-center gap-x-1.5">
            <span className="text-ink-muted">{names[layer]}</span>
            <StatusMark state={state}>{word.toLowerCase()}</StatusMark>
          </li>
        );
      })}
    </ul>
  );
}
