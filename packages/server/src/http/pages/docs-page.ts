/**
 * The page at `/docs`: reads `/openapi.json` in the browser and shows it. One document without anything from
 * elsewhere, under a policy that lets nothing run but the script and style that are part of it.
 */
import { createHash } from 'node:crypto'
import { showApi } from './docs-page-script.ts'
import { docsPageStyle } from './docs-page-style.ts'

// The function's own source: typed and checked like the rest of the program, and sent as it is loaded.
const script = `(${showApi.toString()})()`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(docsPageStyle)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

/** Headers the page is to be sent with; the policy stands in the page as well, except for who may frame it. */
export const docsPageHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
}

export const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference</title>
<link rel="icon" href="data:,">
<style>${docsPageStyle}</style>
</head>
<body>
<header>
<div><h1 id="title">API reference</h1><a href="/openapi.json">OpenAPI document</a></div>
<input id="search" type="search" placeholder="Find an endpoint" aria-label="Find an endpoint" autocomplete="off">
</header>
<nav id="contents" aria-label="Endpoints"></nav>
<main id="main"><p class="quiet">Loading…</p><noscript><p>This page needs JavaScript. The <a href="/openapi.json">OpenAPI document</a> does not.</p></noscript></main>
<script>${script}</script>
</body>
</html>
`
