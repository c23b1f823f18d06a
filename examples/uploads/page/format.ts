/** Sizes and shares as text. */

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3))
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`
}

export const formatShare = (part: number, total: number): string =>
  `${total === 0 ? 100 : Math.floor((100 * part) / total)} %`
