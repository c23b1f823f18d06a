/**
 * The logo, a column on a plinth: on the pages of the server, in the dashboard, and as the icon of the browser's tab,
 * which the build of the dashboard writes.
 */

/** Rectangles on a grid of 48. */
export const logoShapes = [
  { x: 10, y: 5, width: 28, height: 5, rx: 1.5 },
  { x: 15, y: 12, width: 4, height: 20, rx: 1 },
  { x: 22, y: 12, width: 4, height: 20, rx: 1 },
  { x: 29, y: 12, width: 4, height: 20, rx: 1 },
  { x: 10, y: 34, width: 28, height: 4, rx: 1 },
  { x: 5, y: 40, width: 38, height: 5, rx: 1.5 },
] as const

export const logoViewBox = '0 0 48 48'

const rects = logoShapes
  .map(({ x, y, width, height, rx }) => `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${rx}"/>`)
  .join('')

/** An SVG element in the color of the text around it. */
export const logo = `<svg viewBox="${logoViewBox}" aria-hidden="true"><g fill="currentColor">${rects}</g></svg>`

/** An SVG document in the given colors. */
export const iconSvg = (light: string, dark: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${logoViewBox}"><title>Plinth</title><style>g{fill:${light}}@media (prefers-color-scheme:dark){g{fill:${dark}}}</style><g>${rects}</g></svg>\n`
