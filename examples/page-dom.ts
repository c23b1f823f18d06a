/** What the scripts of the example pages share: finding and creating elements. */

/** The element with this id, which the page contains. */
export const find = <Type extends Element = HTMLElement>(id: string): Type =>
  document.getElementById(id) as unknown as Type

/** Creates an element. Children are text, never markup, since text of other users is not trusted. */
export function make<const Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: (string | Node)[]
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

export function createSvg<const Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: (string | Node)[]
): SVGElementTagNameMap[Name] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value))
  made.append(...children)
  return made
}
