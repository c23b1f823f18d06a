import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { formatHomePage, homePageHeaders } from './home-page.ts'

const hostile = `<script>alert("x")</script>'&`
const page = formatHomePage({
  status: hostile,
  links: [{ href: hostile, title: hostile, about: hostile }],
  notice: `${hostile} \`${hostile}\``,
  commands: [{ about: hostile, command: hostile }],
})

test('the content security policy allows the style of the page by hash, and no scripts', () => {
  const policy = homePageHeaders['Content-Security-Policy'] ?? ''
  const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? ''
  expect(policy).toContain(`style-src 'sha256-${createHash('sha256').update(style).digest('base64')}';`)
  expect(policy).not.toMatch(/script-src|unsafe/)
  expect(page).not.toMatch(/ style=|<script| on\w+=/)
})

test('every text is escaped', () => {
  expect(page).not.toContain(hostile)
  expect(page.split('&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;')).toHaveLength(9)
})

test('a page without a notice and commands has neither', () => {
  const bare = formatHomePage({ status: 'ok', links: [], notice: null, commands: [] })
  expect(bare).not.toMatch(/<pre|class="notice"|<h2/)
})
