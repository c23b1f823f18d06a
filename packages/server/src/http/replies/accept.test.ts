import { expect, test } from 'bun:test'
import { prefersHtml } from './accept.ts'

test.each([
  ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', true],
  ['text/html', true],
  ['TEXT/HTML;level=1;Q=0.3', true],
  ['text/*', true],
  ['application/json;q=0.5, text/html', true],
  ['text/html, application/json', true],
  ['text/html;q=0.5, application/json', false],
  ['text/html;q=0', false],
  ['text/html;q=1.5', false],
  ['text/html;q=', false],
  ['text/html;q=1e0', false],
  ['*/*', false],
  ['application/json', false],
  ['application/json, text/plain, */*', false],
  ['text/html/x', false],
  ['', false],
  [null, false],
])('%p: HTML is %p', (accept, expected) => expect(prefersHtml(accept)).toBe(expected))
