import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { renderMailHtml } from './html.ts'

const appName = 'Atlas'
const link = 'https://app.example.org/go?a=1&token=t0ken'

describe('renderMailHtml', () => {
  test('[MAIL-1] the link is a button with the subject, and stands below it in full', () => {
    const html = renderMailHtml({ subject: 'Sign in', text: `Hello:\n\n${link}\n\nBye.\n` }, { appName, link })
    const escaped = link.replace('&', '&amp;')
    expect(html).toMatch(new RegExp(`<a class="button" href="${RegExp.escape(escaped)}"[^>]*>Sign in</a>`))
    expect(html.split(escaped)).toHaveLength(3)
  })

  test('[MAIL-1] the code is in large digits', () => {
    const html = renderMailHtml({ subject: 's', text: 'Code:\n\n012345\n' }, { appName, code: '012345' })
    expect(html).toMatch(/<p class="text code"[^>]*>012345<\/p>/)
  })

  test('[MAIL-1] what is no URL is not a link', () => {
    for (const text of ['t0ken', 'javascript:alert(1)'])
      expect(renderMailHtml({ subject: 's', text }, { appName, link: text })).not.toContain('href')
  })

  test('[MAIL-1] texts add no element and no attribute', () => {
    const evil = fc.array(fc.constantFrom('<', '>', '"', "'", '&', '\n\n', '\n', 'a', '<script>', '" onclick="', link))
    const textOf = evil.map((parts) => parts.join(''))
    const elementsOf = (html: string): string[] =>
      [...html.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replaceAll(/"[^"]*"/g, '""'))
    const known = new Set([
      ...elementsOf(renderMailHtml({ subject: 's', text: `a\nb\n\n${link}\n\n123` }, { appName, link, code: '123' })),
    ])
    fc.assert(
      fc.property(textOf, textOf, textOf, (subject, text, name) => {
        const html = renderMailHtml({ subject, text }, { appName: name, link, code: text })
        for (const tag of elementsOf(html)) expect(known).toContain(tag)
      }),
    )
  })
})
