/**
 * The HTML part of a mail, made of its rendered text: paragraphs, the link as a button and the code in large digits.
 * Nothing of the text is interpreted as HTML, and nothing is loaded from elsewhere. Mail clients apply styles of
 * elements more reliably than stylesheets, which only add the dark colors.
 */
import { escapeHtml } from '../../../base/text/html.ts'
import { type ColorName, colors, fonts, radii } from '../../../http/pages/design-tokens.ts'
import type { MailText } from './templates.ts'

export interface MailHtmlValues {
  readonly appName: string
  /** Stands in a line of its own in the text; a button if it is a URL. */
  readonly link?: string | undefined
  readonly code?: string | undefined
}

const light = (name: ColorName): string => colors[name][0]
const font = escapeHtml(fonts.sans)
const mono = escapeHtml(fonts.mono)

/** Classes that the dark colors apply to, with the properties that they replace. */
const dark: readonly (readonly [className: string, property: string, color: ColorName])[] = [
  ['ground', 'background', 'ground'],
  ['card', 'background', 'surface'],
  ['card', 'border-color', 'line'],
  ['code', 'background', 'sunken'],
  ['text', 'color', 'text'],
  ['quiet', 'color', 'text-2'],
  ['button', 'background', 'accent'],
]
const darkStyle = dark
  .map(([className, property, color]) => `.${className} { ${property}: ${colors[color][1]} !important; }`)
  .join('\n')

const paragraph = (content: string): string =>
  `<p class="text" style="margin:0 0 16px;font:15px/1.6 ${font};color:${light('text')};overflow-wrap:anywhere">${content}</p>`

const button = (link: string, label: string): string =>
  `<p style="margin:24px 0 12px"><a class="button" href="${escapeHtml(link)}" style="display:inline-block;padding:11px 20px;border-radius:${radii[2]}px;background:${light('accent')};color:${light('text-on-accent')};font:600 15px/1.3 ${font};text-decoration:none">${escapeHtml(label)}</a></p>
<p class="quiet" style="margin:0 0 24px;font:12px/1.5 ${mono};color:${light('text-2')};overflow-wrap:anywhere">${escapeHtml(link)}</p>`

const largeCode = (code: string): string =>
  `<p class="text code" style="margin:24px 0;padding:16px;border-radius:${radii[3]}px;background:${light('sunken')};color:${light('text')};font:600 26px/1.2 ${mono};letter-spacing:0.2em;text-align:center">${escapeHtml(code)}</p>`

const isUrl = (text: string): boolean => /^https?:\/\//.test(text)

/** The label of the button is the subject, which is in the language of the mail. */
function blockOf(text: string, subject: string, { link, code }: MailHtmlValues): string {
  if (link !== undefined && text === link && isUrl(link)) return button(link, subject)
  if (code !== undefined && text === code) return largeCode(code)
  return paragraph(escapeHtml(text).replaceAll('\n', '<br>\n'))
}

export function renderMailHtml({ subject, text }: MailText, values: MailHtmlValues): string {
  const blocks = text
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => blockOf(block, subject, values))
  return `<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(subject)}</title>
<style>
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
${darkStyle}
}
</style>
</head>
<body class="ground" style="margin:0;padding:32px 16px;background:${light('ground')}">
<div style="max-width:520px;margin:0 auto">
<p class="text" style="margin:0 0 16px;padding:0 4px;font:600 16px/1.3 ${font};color:${light('text')}">${escapeHtml(values.appName)}</p>
<div class="card" style="padding:28px 28px 12px;border:1px solid ${light('line')};border-radius:${radii[4]}px;background:${light('surface')}">
${blocks.join('\n')}
</div>
</div>
</body>
</html>
`
}
