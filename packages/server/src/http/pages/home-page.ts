/**
 * The home page at `/`: one HTML document without scripts or external resources, under a content security policy that
 * allows only its own style. The system feature provides its content.
 */
import { createHash } from 'node:crypto'
import { escapeHtml } from '../../base/text/html.ts'
import { homePageStyle } from './home-page-style.ts'
import { logo } from './logo.ts'

export interface HomeLink {
  readonly href: string
  readonly title: string
  readonly about: string
}

export interface HomePage {
  /** A line under the title, such as the version. */
  readonly status: string
  readonly links: readonly HomeLink[]
  /** What the operator should do first, or null. Backquotes enclose code. */
  readonly notice: string | null
  /** Shell commands with a description. */
  readonly commands: readonly { readonly about: string; readonly command: string }[]
}

const styleHash = createHash('sha256').update(homePageStyle).digest('base64')

export const homePageHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
}

const formatText = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')

const formatLink = ({ href, title, about }: HomeLink): string =>
  `<li><a href="${escapeHtml(href)}"><b>${escapeHtml(title)}</b><span>${escapeHtml(about)}</span></a></li>`

function formatCommands(commands: HomePage['commands']): string {
  if (commands.length === 0) return ''
  const items = commands.map(
    ({ about, command }) => `<li><p>${formatText(about)}</p><pre><code>${escapeHtml(command)}</code></pre></li>`,
  )
  return `<h2>First commands</h2>\n<ol>\n${items.join('\n')}\n</ol>\n`
}

/** The HTML document. Escapes every text. */
export const formatHomePage = ({ status, links, notice, commands }: HomePage): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Plinth</title>
<link rel="icon" href="data:,">
<style>${homePageStyle}</style>
</head>
<body>
<main>
<header>${logo}<div><h1>Plinth</h1><p>${escapeHtml(status)}</p></div></header>
<ul>
${links.map(formatLink).join('\n')}
</ul>
${notice === null ? '' : `<p class="notice">${formatText(notice)}</p>\n`}${formatCommands(commands)}</main>
</body>
</html>
`
