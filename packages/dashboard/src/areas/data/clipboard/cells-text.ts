/** Cells as the text that spreadsheets exchange: values between tabs, rows between line breaks, quotes around both. */

type Cells = readonly (readonly string[])[]

const needsQuotes = /[\t\r\n]|^"/

export const formatCells = (cells: Cells): string =>
  cells
    .map((row) => row.map((text) => (needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join('\t'))
    .join('\n')

/** A cell in quotes from `at` on, and where it ends; null where the quotes do not enclose all of it. */
function quotedAt(text: string, at: number): { readonly cell: string; readonly end: number } | null {
  let cell = ''
  for (let from = at + 1; ; ) {
    const quote = text.indexOf('"', from)
    if (quote < 0) return null
    cell += text.slice(from, quote)
    if (text[quote + 1] === '"') {
      cell += '"'
      from = quote + 2
      continue
    }
    const end = quote + 1
    return end === text.length || /[\t\r\n]/.test(text[end] ?? '') ? { cell, end } : null
  }
}

/** The cells of a text. A line break at its end ends the last row. */
export function parseCells(text: string): string[][] {
  const rows: string[][] = [[]]
  const ending = /[\t\r\n]/g
  for (let at = 0; ; ) {
    const quoted = text[at] === '"' ? quotedAt(text, at) : null
    ending.lastIndex = at
    const end = quoted?.end ?? ending.exec(text)?.index ?? text.length
    rows.at(-1)?.push(quoted?.cell ?? text.slice(at, end))
    if (end === text.length) return rows
    const isRow = text[end] !== '\t'
    at = end + (text.startsWith('\r\n', end) ? 2 : 1)
    if (isRow && at === text.length) return rows
    if (isRow) rows.push([])
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

const textOfHtml = (html: string): string =>
  html
    .replaceAll(/<br\b[^>]*>/gi, '\n')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => entities[name] ?? '')

/** The cells of the first table of an HTML text, which is never parsed to a document; none without a table. */
export const parseHtmlCells = (html: string): string[][] =>
  [...html.matchAll(/<tr\b[^>]*>(.*?)<\/tr>/gis)]
    .map(([, row = '']) =>
      [...row.matchAll(/<t[dh]\b[^>]*>(.*?)<\/t[dh]>/gis)].map(([, cell = '']) => textOfHtml(cell)),
    )
    .filter((row) => row.length > 0)
