/**
 * Bytes of a file as the runtime sends them without reading them into the program. Who may have them is not known here.
 */

/** Bytes `start` to `end` (not included) of a file. Nothing is opened before it is read. */
export const openFileSlice = (path: string, start: number, end: number): Blob => Bun.file(path).slice(start, end)
