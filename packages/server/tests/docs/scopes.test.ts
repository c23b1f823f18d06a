/** Scopes that the documents name can be configured: a reader copies them. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseScope } from '../../src/access/service-keys.ts'

const docs = join(import.meta.dir, '../../../../docs')
const files = ['rules.md', ...readdirSync(join(docs, 'guides')).map((name) => join('guides', name))]

/** Text between backticks or quotes that has the four parts of a scope, such as `db:table:posts:read`. */
const scopePattern = /[`'"](?!area:)(?=[a-z]+:)((?:[\w.*-]+:){3}[\w*-]+)[`'"]/g

test.each(files.filter((name) => name.endsWith('.md')))('every scope in %s is valid', (name) => {
  const text = readFileSync(join(docs, name), 'utf8')
  for (const [, scope = ''] of text.matchAll(scopePattern)) expect(parseScope(scope)).toBe(scope)
})
