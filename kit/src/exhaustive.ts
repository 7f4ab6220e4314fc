// Ends every switch over a union: adding a member without handling it becomes a type error.

export function exhaustive(value: never): never {
  throw new Error(`unhandled case: ${JSON.stringify(value)}`);
}
