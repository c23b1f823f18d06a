/**
 * Parser for the XML subset of S3 responses: flat lists of elements without relevant attributes, found by name. Not a
 * general XML parser.
 */

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,4}));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return entities[name] ?? all
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : all
  })
}

/** The text of the first element with this name; null if there is none. */
export function textIn(xml: string, name: string): string | null {
  const start = xml.indexOf(`<${name}>`)
  const end = start < 0 ? -1 : xml.indexOf(`</${name}>`, start)
  return end < 0 ? null : decode(xml.slice(start + name.length + 2, end))
}

/** The content of every element with this name, in order; elements must not nest. */
export function* elementsIn(xml: string, name: string): Generator<string> {
  const [opening, closing] = [`<${name}>`, `</${name}>`]
  for (let start = xml.indexOf(opening); start >= 0; ) {
    const end = xml.indexOf(closing, start)
    if (end < 0) return
    yield xml.slice(start + opening.length, end)
    start = xml.indexOf(opening, end)
  }
}
