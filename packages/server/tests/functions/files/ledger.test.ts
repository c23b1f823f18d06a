/** A ledger of files over kills: each stored, changed and deleted file reaches the function once. */
import { describe, expect, test } from 'bun:test'
import { engines } from '../../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { bucketPath, createMultipart, filePath, tusUpload, upload, uploadPart } from '../../harness/storage/files.ts'

const filesMax = 90
const killsMax = 3

const configText = `export default {
  databases: { shared: { tables: { ledger: { schema: { file: { type: 'string' }, operation: { type: 'string' } }, access: {} } } } },
  storage: { buckets: { files: {} } },
}`

const functionsText = `import { functionsFor } from 'plinth/functions'
const { onChange, before } = functionsFor()
export const check = before('storage.files', ['insert'], ({ row }) => ({ ...row, customMetadata: { size: String(row.size) } }))
export const keep = onChange('storage.files', { retries: 50 }, async ({ operation, after, previous }, ctx) => {
  await ctx.service.db('shared').ledger.insert({ file: (after ?? previous).key, operation })
})
`

type Send = (server: SpawnedServer, key: string) => Promise<{ readonly status: number }>

/** The paths by which a file is stored. */
const paths: readonly Send[] = [
  ({ service }, key) => upload(service, 'files', { key, content: key }),
  ({ service }, key) => tusUpload(service, 'files', { key, content: key }),
  async ({ service }, key) => {
    const uploadId = await createMultipart(service, 'files', { key })
    const { etag } = (await uploadPart(service, 'files', { uploadId, partNumber: 1, key }, key)).body
    return service.post(`${bucketPath('files')}/multipart/complete`, {
      uploadId,
      key,
      parts: [{ partNumber: 1, etag }],
    })
  },
]

/** What is done with every file, in order; the operation that the function gets. */
const steps: readonly (readonly [operation: string, send: Send])[] = [
  ['insert', (server, key) => (paths[Number(key.slice(1)) % paths.length] as Send)(server, key)],
  ['update', ({ service }, key) => service.patch(`${filePath('files', key)}/metadata`, { a: 'b' })],
  ['delete', ({ service }, key) => service.delete(filePath('files', key))],
]

/** `acknowledged` of a file: its operations with an answer. The answers of the others are lost. */
async function live(server: SpawnedServer, key: string, acknowledged: Set<string>): Promise<void> {
  for (const [operation, send] of Number(key.slice(1)) % 2 ? steps : steps.slice(0, 2)) {
    const { status } = await send(server, key).catch(() => ({ status: 0 }))
    if (status >= 200 && status < 300) acknowledged.add(operation)
  }
}

/** All entries; there are fewer than fit a page. */
async function entries({ service }: SpawnedServer): Promise<readonly { file: string; operation: string }[]> {
  const { body } = await service.get('/api/db/shared/tables/ledger?page=1&perPage=1000&sort=id:asc')
  expect(body.items).toHaveLength(body.total)
  return body.items
}

async function storedKeys({ service }: SpawnedServer): Promise<ReadonlySet<string>> {
  const { objects } = (await service.get(`${bucketPath('files')}?limit=1000`)).body
  return new Set((objects as { key: string }[]).map(({ key }) => key))
}

/** Until the change of a file that is stored now has become a job, and no job is unfinished. */
async function drained(server: SpawnedServer): Promise<void> {
  expect((await upload(server.service, 'files', { key: 'last', content: '' })).status).toBe(201)
  const isThere = async () => (await entries(server)).some(({ file }) => file === 'last')
  while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 20))
  for (const status of ['waiting', 'running', 'failed'])
    while ((await server.service.get(`/api/functions/jobs?status=${status}`)).body.items.length > 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
}

for (const engine of engines)
  describe(`the ledger of files on ${engine.name}`, () => {
    test(
      '[FN-FILE-6, FN-FILE-2, STORE-10] each change of a file reaches the function once, over kills of the server',
      async () => {
        const server = await spawnServer(configText, engine, { files: { 'functions/index.ts': functionsText } })
        const acknowledged = new Map<string, Set<string>>()
        try {
          let next = 0
          for (let kill = 0; kill <= killsMax; kill++) {
            const until = Math.ceil((filesMax * (kill + 1)) / (killsMax + 1))
            const writers = Array.from({ length: 6 }, async () => {
              while (next < until) {
                const key = `f${next++}`
                acknowledged.set(key, new Set())
                await live(server, key, acknowledged.get(key) as Set<string>)
              }
            })
            if (kill < killsMax) {
              while (next < until - 3) await new Promise((resolve) => setTimeout(resolve, 1))
              await server.kill()
            }
            await Promise.all(writers)
            if (kill < killsMax) await server.start()
          }
          await drained(server)
          const ledger = Map.groupBy(await entries(server), ({ file }) => file)
          const stored = await storedKeys(server)
          expect([...acknowledged.values()].filter(({ size }) => size > 0).length).toBeGreaterThan(filesMax / 2)
          for (const [key, known] of acknowledged) {
            const operations = (ledger.get(key) ?? []).map(({ operation }) => operation)
            const isStored = operations.includes('insert') && !operations.includes('delete')
            // In order, each at most once, all that were acknowledged, and as the bucket says.
            const expected = steps.map(([operation]) => operation).filter((operation) => operations.includes(operation))
            expect({ key, operations, isStored }).toEqual({ key, operations: expected, isStored: stored.has(key) })
            expect({ key, lost: [...known.difference(new Set(operations))] }).toEqual({ key, lost: [] })
          }
        } finally {
          await server.remove()
        }
      },
      killsMax * 60_000 + filesMax * 2000 + 60_000,
    )
  })
