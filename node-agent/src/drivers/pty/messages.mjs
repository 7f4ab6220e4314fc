// @ts-check
// What agent and holder say to each other over the holder's socket: [kind][length][payload]. Bytes of the
// PTY are passed on as they arrive, in whatever pieces; everything else is a small JSON text.
// Plain JavaScript, as all that a holder loads: stripping types would take 60 ms and 12 MB of each holder.

/** @typedef {import("node:net").Socket} Socket */
/** @typedef {Record<string, unknown> & { type: string }} Control */

const BYTES = 0;
const CONTROL = 1;
const HEADER = 5;
const MOST_CONTROL = 64 * 1024;
const MOST_BYTES = 16 * 1024 * 1024;

/** @param {Socket} socket @param {Buffer} bytes */
export function sendBytes(socket, bytes) {
  send(socket, BYTES, bytes);
}

/** @param {Socket} socket @param {Control} message */
export function sendControl(socket, message) {
  send(socket, CONTROL, Buffer.from(JSON.stringify(message)));
}

/** @param {Socket} socket @param {number} kind @param {Buffer} payload */
function send(socket, kind, payload) {
  if (socket.destroyed) return;
  const header = Buffer.allocUnsafe(HEADER);
  header[0] = kind;
  header.writeUInt32BE(payload.length, 1);
  // Both leave in one system call.
  socket.cork();
  socket.write(header);
  socket.write(payload);
  socket.uncork();
}

/**
 * Takes what the socket brings, in pieces of any size. Whoever breaks the form is not listened to any more.
 * @param {{ onBytes: (bytes: Buffer) => void, onControl: (message: Control) => void, onBroken: () => void }} events
 * @returns {(chunk: Buffer) => void}
 */
export function createReader({ onBytes, onControl, onBroken }) {
  const header = Buffer.alloc(HEADER);
  let headerHas = 0;
  let kind = BYTES;
  /** Of the present payload, still to come. */
  let left = 0;
  /** @type {Buffer[]} */
  let parts = [];
  let broken = false;
  const breakOff = () => {
    broken = true;
    onBroken();
  };
  const control = () => {
    const message = parse(Buffer.concat(parts));
    parts = [];
    if (message) onControl(message);
    else breakOff();
  };

  return (chunk) => {
    let at = 0;
    while (at < chunk.length && !broken) {
      if (headerHas < HEADER) {
        const taken = chunk.copy(header, headerHas, at, at + HEADER - headerHas);
        headerHas += taken;
        at += taken;
        if (headerHas < HEADER) return;
        kind = header[0] ?? BYTES;
        left = header.readUInt32BE(1);
        if (kind > CONTROL || left > (kind === CONTROL ? MOST_CONTROL : MOST_BYTES)) return breakOff();
      }
      const piece = chunk.subarray(at, at + left);
      at += piece.length;
      left -= piece.length;
      if (kind === CONTROL) parts.push(piece);
      else if (piece.length > 0) onBytes(piece);
      if (left > 0) return;
      headerHas = 0;
      if (kind === CONTROL) control();
    }
  };
}

/** @param {Buffer} text @returns {Control | undefined} */
function parse(text) {
  try {
    const value = JSON.parse(text.toString());
    return typeof value?.type === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
