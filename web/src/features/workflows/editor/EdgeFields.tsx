// What a step waits for, as a list: edges without the graph, for keyboards.

import { useState } from "react";
import { Button, IconButton } from "../../../design/controls/Button.tsx";
import { Icon } from "../../../design/controls/Icon.tsx";
import { SelectField } from "../../../design/forms/Field.tsx";
import { edgesOf, edgeText, type GraphEdge, type OutlineNode } from "../document/outline.ts";
import { portsOfType, portWords } from "../graph/words.ts";

type EdgeFieldsProps = {
  id: string;
  nodes: readonly OutlineNode[];
  readOnly: boolean;
  onConnect: (edge: GraphEdge) => void;
  onDisconnect: (edge: GraphEdge) => void;
};

export function EdgeFields({ id, nodes, readOnly, onConnect, onDisconnect }: EdgeFieldsProps) {
  const [chosen, setChosen] = useState("");
  const edges = edgesOf(nodes).filter(({ to }) => to === id);
  const taken = new Set(edges.map(edgeText));
  const possible = nodes
    .filter((node) => node.id !== id)
    .flatMap((node) => portsOfType(node.type).map((port): GraphEdge => ({ from: node.id, port, to: id })))
    .filter((edge) => !taken.has(edgeText(edge)));
  const edge = possible.find((one) => edgeText(one) === chosen);
  return (
    <fieldset className="space-y-2">
      <legend className="mb-1.5 font-medium">Runs after</legend>
      {edges.length === 0 && <p className="text-ink-muted">The start of the run</p>}
      <ul aria-label="Runs after" className="flex flex-wrap gap-2">
        {edges.map((one) => (
          <li key={edgeText(one)} className="flex items-center gap-1 rounded-md bg-sunken pl-2.5 text-sm">
            {inWords(one)}
            {!readOnly && (
              <IconButton label={`Not after ${inWords(one)}`} className="size-7" onClick={() => onDisconnect(one)}>
                <Icon name="close" className="size-3" />
              </IconButton>
            )}
          </li>
        ))}
      </ul>
      {!readOnly && possible.length > 0 && (
        <div className="flex items-end gap-2">
          <SelectField
            label="Another step"
            value={edge ? chosen : ""}
            className="min-w-0 flex-1"
            onChange={(event) => setChosen(event.currentTarget.value)}
          >
            <option value="">Choose a step</option>
            {possible.map((one) => (
              <option key={edgeText(one)} value={edgeText(one)}>
                {inWords(one)}
              </option>
            ))}
          </SelectField>
          <Button disabled={!edge} onClick={() => edge && onConnect(edge)}>
            Connect
          </Button>
        </div>
      )}
    </fieldset>
  );
}

const inWords = ({ from, port }: GraphEdge) => (port === "succeeded" ? from : `${from}, ${portWords[port]}`);
