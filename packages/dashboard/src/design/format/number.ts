/** Counts, sizes and durations as text. */

export const formatCount = (count: number): string => count.toLocaleString('en')

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** In decimal units with at most one digit after the point, such as `1.4 MB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3), byteUnits.length - 1)
  return `${(bytes / 1000 ** power).toLocaleString('en', { maximumFractionDigits: 1 })} ${byteUnits[power]}`
}

/** Milliseconds with the digits that matter: `0.42 ms`, `12 ms`, `3.1 s`. */
export const formatDuration = (ms: number): string =>
  ms >= 1000
    ? `${(ms / 1000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
    : `${ms.toLocaleString('en', { maximumSignificantDigits: ms >= 100 ? 3 : 2 })} ms`
