/**
 * The little XML that S3 answers with. Its documents are flat lists of elements without attributes that matter, so
 * looking for elements by name reads them; it would not read XML at large.
 */

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,4}));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return entities[name] ?? all
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : all
  })
}

/** The text of the first element of this name; null where there is none. */
export function textIn(xml: string, name: string): string | null {
  const start = xml.indexOf(`<${name}>`)
  const end = start < 0 ? -1 : xml.indexOf(`</${name}>`, start)
  return end < 0 ? null : decode(xml.slice(start + name.length + 2, end))
}

/** The insides of every element of this name, in order; none of them may hold another of the same name. */
export function* elementsIn(xml: string, name: string): Generator<string> {
  const [opening, closing] = [`<${name}>`, `</${name}>`]
  for (let start = xml.indexOf(opening); start >= 0; ) {
    const end = xml.indexOf(closing, start)
    if (end < 0) return
    yield xml.slice(start + opening.length, end)
    start = xml.indexOf(opening, end)
  }
}
