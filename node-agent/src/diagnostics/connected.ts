// How records begin by which `diagnose` recognizes them. A file of its own: a running agent does not load what `diagnose` needs.

/** The record of a connection to the server. */
export const CONNECTED = "connected to";

/** The record that findings are over; their reasons follow, separated by commas. It says nothing about any other. */
export const NO_LONGER_FOUND = "no longer found: ";
