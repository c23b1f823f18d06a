/** Content negotiation between JSON and HTML (RFC 9110 §12.5.1). */

/** `q=0.5`, `q=1.000`; a malformed quality counts as 0. */
const qualityPattern = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i

/** Quality by media range, in lower case; malformed entries are left out. */
function parseAccept(header: string): ReadonlyMap<string, number> {
  const qualities = new Map<string, number>()
  for (const entry of header.split(',')) {
    const [range = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
    if (!/^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/.test(range)) continue
    const written = parameters.find((parameter) => parameter.startsWith('q='))
    const quality = written === undefined ? '1' : qualityPattern.exec(written)?.[1]
    if (quality !== undefined) qualities.set(range, Number(quality))
  }
  return qualities
}

/**
 * Whether the client accepts HTML explicitly and does not prefer JSON. A wildcard is not enough: browsers send
 * `text/html`, programs a wildcard or nothing.
 */
export function prefersHtml(accept: string | null): boolean {
  const qualities = parseAccept(accept ?? '')
  const html = qualities.get('text/html') ?? qualities.get('text/*') ?? 0
  const json = qualities.get('application/json') ?? 0
  return html > 0 && html >= json
}
