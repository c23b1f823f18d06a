/** A range of a file that the runtime sends without copying it through JavaScript. */

/** Bytes `start` to `end` (exclusive) of a file, which is opened when it is read. */
export const openFileSlice = (path: string, start: number, end: number): Blob => Bun.file(path).slice(start, end)
