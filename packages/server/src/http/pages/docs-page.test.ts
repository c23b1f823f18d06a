import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { docsPage, docsPageHeaders } from './docs-page.ts'

const policy = docsPageHeaders['Content-Security-Policy'] ?? ''
const contentOf = (tag: string): string => new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(docsPage)?.[1] ?? ''

test.each(['script', 'style'])('the policy allows the page’s own %s by its hash, and no other', (tag) => {
  const hash = createHash('sha256').update(contentOf(tag)).digest('base64')
  expect(policy).toContain(`${tag}-src 'sha256-${hash}';`)
  expect(docsPage.split(`<${tag}`)).toHaveLength(2)
  expect(policy).not.toContain('unsafe')
})

test('the page contains the content security policy as well', () => {
  const inPage = /<meta http-equiv="Content-Security-Policy" content="([^"]+)">/.exec(docsPage)?.[1] ?? 'none'
  expect(policy).toStartWith(inPage)
  expect(policy.slice(inPage.length)).toBe("; frame-ancestors 'none'")
})

test('the script has no dependencies and creates no markup from text', () => {
  const script = contentOf('script')
  expect(() => new Function(script)).not.toThrow()
  expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write/)
  expect(docsPage).not.toMatch(/https?:\/\//)
})
