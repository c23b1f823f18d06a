/** `npm run reference`: writes the pages of docs/reference that are generated from the source. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeReference } from './reference/pages.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
for (const [path, text] of await writeReference(root)) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
