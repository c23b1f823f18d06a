/**
 * Every size and color of the dashboard, of the pages at `/`, `/docs` and `/setup`, and of mails: one type scale, one
 * spacing scale, one set of colors in light and dark. Styles use these names and no numbers of their own for them. The
 * build of the dashboard writes them into its stylesheet.
 */

/** In light and in dark. */
type Pair = readonly [light: string, dark: string]

export const colors = {
  // Surfaces, from the back to the front.
  ground: ['#f7f7f8', '#0e0f11'],
  surface: ['#ffffff', '#151619'],
  raised: ['#ffffff', '#1c1e22'],
  sunken: ['#f2f2f4', '#101113'],
  field: ['#ffffff', '#101114'],
  hover: ['rgb(20 22 30 / 4.5%)', 'rgb(235 240 255 / 6%)'],
  pressed: ['rgb(20 22 30 / 8%)', 'rgb(235 240 255 / 10%)'],
  overlay: ['rgb(18 20 28 / 32%)', 'rgb(0 0 0 / 58%)'],

  line: ['#e6e6ea', '#26282d'],
  'line-strong': ['#d3d4da', '#383b42'],

  text: ['#17181c', '#eceef2'],
  'text-2': ['#565962', '#a3a8b3'],
  'text-3': ['#6b6e78', '#858b97'],
  'text-on-accent': ['#ffffff', '#ffffff'],

  accent: ['#3457d5', '#4767de'],
  'accent-hover': ['#2a49bb', '#3f5fd6'],
  'accent-text': ['#2f4fc6', '#93a9fb'],
  'accent-soft': ['#edf0fd', '#1d2440'],
  'accent-line': ['#c3cef7', '#34426f'],

  good: ['#15703f', '#4cc38a'],
  'good-soft': ['#e6f5ec', '#14291f'],
  warn: ['#8f5a00', '#e5b454'],
  'warn-soft': ['#fdf3dc', '#2d2412'],
  bad: ['#c0283a', '#ff8088'],
  'bad-fill': ['#c9303f', '#c93545'],
  'bad-fill-hover': ['#ad2433', '#b32d3c'],
  'bad-soft': ['#fdecee', '#331a1d'],
  'bad-line': ['#f2c2c7', '#5b2a30'],
  // Of the whole frame while an administrator views as a user; nothing else is orange.
  viewing: ['#f28c28', '#f28c28'],
  'viewing-soft': ['#fff0e4', '#3a2112'],
  'viewing-text': ['#1d0f05', '#1d0f05'],
  violet: ['#6d3fc0', '#b794f6'],
  'violet-soft': ['#f3edfd', '#261d3a'],

  focus: ['#3457d5', '#7f9aff'],
} as const satisfies Readonly<Record<string, Pair>>

export type ColorName = keyof typeof colors

export const fonts = {
  sans: 'system-ui, -apple-system, "Inter", "Segoe UI", "Noto Sans", "Helvetica Neue", sans-serif',
  mono: 'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", "DejaVu Sans Mono", monospace',
} as const

/**
 * Pixels. 13 is the body of a dense tool, 12 its labels, 11 only for captions in capitals; 14 is the body of a page.
 */
const textSizes = [11, 12, 13, 14, 16, 20, 26] as const

/** Steps of 4 pixels. */
const spaces = [1, 2, 3, 4, 5, 6, 8, 12, 16] as const

/** Pixels. */
export const radii = { 1: 4, 2: 6, 3: 8, 4: 12 } as const

const rootFontPixels = 16
const shadowLine = 'light-dark(rgb(20 22 30 / 7%), rgb(255 255 255 / 9%))'

const declarations: readonly (readonly [name: string, value: string])[] = [
  ...Object.entries(fonts).map(([name, value]) => [`font-${name}`, value] as const),
  ...textSizes.map((pixels) => [`text-${pixels}`, `${pixels / rootFontPixels}rem`] as const),
  ['line-tight', '1.25'],
  ['line-body', '1.5'],
  // Only inside of controls.
  ['space-half', '2px'],
  ...spaces.map((step) => [`space-${step}`, `${step * 4}px`] as const),
  ...Object.entries(radii).map(([step, pixels]) => [`radius-${step}`, `${pixels}px`] as const),
  ['control-small', '24px'],
  ['control', '30px'],
  ['control-large', '38px'],
  ['rail-width', '216px'],
  ['topbar-height', '46px'],
  ...Object.entries(colors).map(
    ([name, [light, dark]]) => [name, light === dark ? light : `light-dark(${light}, ${dark})`] as const,
  ),
  ['shadow-1', '0 1px 2px light-dark(rgb(20 22 30 / 6%), rgb(0 0 0 / 40%))'],
  ['shadow-2', `0 0 0 1px ${shadowLine}, 0 8px 24px -4px light-dark(rgb(20 22 30 / 16%), rgb(0 0 0 / 60%))`],
  ['shadow-3', `0 0 0 1px ${shadowLine}, 0 24px 64px -12px light-dark(rgb(20 22 30 / 30%), rgb(0 0 0 / 75%))`],
  ['fast', '110ms cubic-bezier(0.2, 0, 0, 1)'],
  ['calm', '180ms cubic-bezier(0.2, 0, 0, 1)'],
]

/** The tokens as custom properties, for the beginning of a stylesheet. */
export const tokensCss = `:root {
  color-scheme: light dark;
${declarations.map(([name, value]) => `  --${name}: ${value};`).join('\n')}
}
[data-theme="light"] { color-scheme: light; }
[data-theme="dark"] { color-scheme: dark; }
@media (prefers-reduced-motion: reduce) {
  :root { --fast: 0s linear; --calm: 0s linear; }
}
/* Fingers need larger controls than a mouse. */
@media (pointer: coarse), (max-width: 640px) {
  :root { --control-small: 30px; --control: 36px; --control-large: 44px; }
}
`
