// How far this host's clock is from the server's, from one request and its response. The response was
// written at some time between sending and receiving, so the round trip bounds the error.

/** Milliseconds. */
export type ClockSkew = {
  /** The server's clock minus this host's. */
  offset: number;
  /** The offset may be wrong by this much either way. */
  uncertainty: number;
};

export function clockSkew(answer: { sentAt: number; receivedAt: number; serverTime: number }): ClockSkew {
  const middle = (answer.sentAt + answer.receivedAt) / 2;
  return { offset: answer.serverTime - middle, uncertainty: Math.abs(answer.receivedAt - answer.sentAt) / 2 };
}

/** The part of the offset that is certain, in seconds; 0 when it may be entirely due to the round trip. */
export function certainSkewSeconds({ offset, uncertainty }: ClockSkew): number {
  return (Math.sign(offset) * Math.max(0, Math.abs(offset) - uncertainty)) / 1000;
}
