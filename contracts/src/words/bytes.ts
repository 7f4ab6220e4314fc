// Sizes of memory and disks, in the units that operators count them in.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytesInWords(bytes: number): string {
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const count = bytes / 1024 ** step;
  return `${count < 10 && step > 0 ? Math.round(count * 10) / 10 : Math.round(count)} ${units[step]}`;
}
