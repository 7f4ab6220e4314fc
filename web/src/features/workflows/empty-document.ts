// The draft of a workflow that was just created.

export const emptyDocument = `version: "1"

# Every step has an id. It starts when the steps in \`after\` have ended; without \`after\`, at the start of the run.
nodes: {}
`;
