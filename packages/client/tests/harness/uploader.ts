/**
 * A process that uploads a file until it is killed, run as `uploader.ts URL FOLDER FILE`; its storage is the folder.
 * Prints each chunk that it begins to send, and `done`.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootKey } from '../../../server/tests/harness/server.ts'
import { createClient, files, type SessionStorage } from '../../src/index.ts'

const [url = '', folder = '', file = ''] = process.argv.slice(2)
const pathOf = (key: string): string => join(folder, createHash('sha256').update(key).digest('hex'))
const storage: SessionStorage = {
  get: (key) => (existsSync(pathOf(key)) ? readFileSync(pathOf(key), 'utf8') : null),
  set(key, value) {
    writeFileSync(`${pathOf(key)}.next`, value)
    renameSync(`${pathOf(key)}.next`, pathOf(key))
  },
  remove: (key) => rmSync(pathOf(key), { force: true }),
}
const observed = (input: string, init: RequestInit): Promise<Response> => {
  if (init.body) console.log(`chunk ${new Headers(init.headers).get('upload-offset') ?? 0}`)
  return fetch(input, init)
}
const client = createClient(url, [files], { storage, serviceKey: rootKey, fetch: observed as typeof fetch })
await client.files('box').upload('large', Bun.file(file))
console.log('done')
