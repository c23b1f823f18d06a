/** Buckets of a real S3 server, each for one test. Asks with nothing of the program's own. */
import { AwsClient } from 'aws4fetch'
import type { PrivateServer } from '../../../../../scripts/servers/private-server.ts'
import { createBucket } from '../../../../../scripts/servers/s3.ts'
import type { Blobs } from '../../../src/engines/blobs/blobs.ts'
import type { StoreAddress } from '../../../src/engines/blobs/store-address.ts'

export interface Bucket {
  readonly address: StoreAddress
  /** A signed request below the bucket; `path` begins with `/` or `?`. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** Keys of all objects, and of all uploads that have not ended. */
  list(): Promise<{ objects: string[]; uploads: string[] }>
  /** Empties and removes it. */
  remove(): Promise<void>
}

const valuesIn = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, value = '']) => value)

/** A bucket of its own for one test. Must be removed. */
export async function openBucket(serverUrl: string): Promise<Bucket> {
  const address = await createBucket(serverUrl, `test-${crypto.randomUUID()}`)
  const client = new AwsClient({ ...address, service: 's3', retries: 0 })
  const send = async (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(await client.sign(`${address.endpoint}/${address.bucket}${path}`, init))
  const listAll = async (): Promise<{ objects: string[]; uploads: string[]; uploadIds: string[] }> => {
    const [objects, uploads] = await Promise.all(
      ['?list-type=2', '?uploads'].map(async (query) => (await send(query)).text()),
    )
    return {
      objects: valuesIn(objects ?? '', 'Key'),
      uploads: valuesIn(uploads ?? '', 'Key'),
      uploadIds: valuesIn(uploads ?? '', 'UploadId'),
    }
  }
  return {
    address,
    fetch: send,
    async list() {
      const { objects, uploads } = await listAll()
      return { objects, uploads }
    },
    async remove() {
      for (let { objects, uploads, uploadIds } = await listAll(); ; { objects, uploads, uploadIds } = await listAll()) {
        for (const key of objects) await send(`/${key}`, { method: 'DELETE' })
        for (const [at, key] of uploads.entries()) await send(`/${key}?uploadId=${uploadIds[at]}`, { method: 'DELETE' })
        if (objects.length + uploads.length === 0) break
      }
      const removed = await send('', { method: 'DELETE' })
      if (!removed.ok) throw new Error(`the bucket stays: ${await removed.text()}`)
    },
  }
}

/** Starts a store again, and waits until it is known to be back. */
export async function restart(server: PrivateServer, blobs: Blobs): Promise<void> {
  await server.start()
  while ((await blobs.findFault()) !== null) await new Promise((resolve) => setTimeout(resolve, 20))
}
