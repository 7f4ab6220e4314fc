// How the record of a connection to the server begins, by which `diagnose` finds it. A file of its own: a running agent
// does not load what `diagnose` needs.

export const CONNECTED = "connected to";
