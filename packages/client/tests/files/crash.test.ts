/**
 * A large upload through kills of the server and of the uploading process at the same moment. `PLINTH_UPLOAD_MB=200`
 * uploads 200 MB.
 */
import { expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnServer } from '../../../server/tests/harness/processes/spawn.ts'
import { rootKey } from '../../../server/tests/harness/server.ts'

const configText = `
import { defineConfig } from 'plinth'
export default defineConfig({
  databases: { shared: { tables: {} } },
  storage: { buckets: { box: { access: {}, maxFileSize: '1gb' } } },
})
`
const megabyte = 1024 * 1024
const size = Number(process.env.PLINTH_UPLOAD_MB ?? 40) * megabyte
const chunks = Math.ceil(size / (5 * megabyte))
const kills = 5

/** Starts the process. `lines` are those that it prints. */
function startUploader(...args: readonly string[]) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../harness/uploader.ts'), ...args], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  async function* readLines() {
    let text = ''
    for await (const part of child.stdout) {
      const lines = (text + Buffer.from(part).toString()).split('\n')
      text = lines.pop() ?? ''
      yield* lines
    }
  }
  return {
    lines: readLines(),
    async kill(): Promise<void> {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

test('an upload through five kills of server and process is complete, and sends at most five chunks twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-upload-'))
  const file = join(folder, 'large.bin')
  const hash = createHash('sha256')
  for (let at = 0; at < size; at += megabyte) {
    const bytes = randomBytes(megabyte)
    hash.update(bytes)
    appendFileSync(file, bytes)
  }
  const server = await spawnServer(configText)
  const { url } = server
  const sent: string[] = []
  try {
    // Spread over the upload; the first one after the server has named it.
    for (let kill = 1; kill <= kills; kill++) {
      const uploader = startUploader(url, folder, file)
      const killAt = Math.max(2, Math.floor((chunks * kill) / (kills + 1)) + kill - 1)
      for await (const line of uploader.lines) {
        expect(line).not.toBe('done')
        sent.push(line)
        if (sent.length >= killAt) break
      }
      await Promise.all([server.kill(), uploader.kill()])
      await server.start(['--port', new URL(url).port])
    }
    const last = startUploader(url, folder, file)
    for await (const line of last.lines) sent.push(line)
    expect(sent.pop()).toBe('done')
    expect(sent.length - chunks).toBeLessThanOrEqual(kills)
    // Otherwise the kills hit no chunk.
    expect(sent.length).toBeGreaterThan(chunks)
    const stored = await fetch(`${url}/api/storage/box/large`, { headers: { 'X-Platform-Service-Key': rootKey } })
    const received = createHash('sha256')
    for await (const part of stored.body as ReadableStream<Uint8Array>) received.update(part)
    expect(received.digest('hex')).toBe(hash.digest('hex'))
    console.log(`${size / megabyte} MB in ${chunks} chunks: ${sent.length - chunks} sent twice`)
  } finally {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}, 300_000)
