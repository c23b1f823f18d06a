/** A private S3 server, which checks signatures and everything else as the real ones do. It keeps files in a folder. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import type { StoreAddress } from '../../packages/server/src/engines/blobs/store-address.ts'
import { makePassword, openPrivateServer, type PrivateServer } from './private-server.ts'

/** Starts the program at `path`. The address holds the access key and its secret. Must be removed. */
export function openS3(path: string): Promise<PrivateServer> {
  const [accessKeyId, secretAccessKey] = [makePassword(), makePassword()]
  return openPrivateServer('s3', ({ folder, port }) => {
    const [files, metadata] = [join(folder, 'files'), join(folder, 'metadata')]
    for (const made of [files, metadata]) mkdirSync(made)
    return {
      url: `http://${accessKeyId}:${secretAccessKey}@127.0.0.1:${port}`,
      process: {
        command: [
          path,
          `--port=127.0.0.1:${port}`,
          // As the runtime of the tests expects of a store.
          '--keep-alive',
          // The log of requests goes to standard output otherwise.
          '--access-log=/dev/null',
          'posix',
          // Not every file system keeps extended attributes.
          `--sidecar=${metadata}`,
          files,
        ],
        ready: 'service listening on',
        // Not among the arguments, where other users of the machine see them.
        environment: { ROOT_ACCESS_KEY_ID: accessKeyId, ROOT_SECRET_ACCESS_KEY: secretAccessKey },
      },
      isReadyEarly: true,
    }
  })
}

/** Makes a bucket on a server that `openS3` started, by its address. */
export async function createBucket(serverUrl: string, bucket: string): Promise<StoreAddress> {
  const { origin, username, password } = new URL(serverUrl)
  const address = { endpoint: origin, bucket, region: 'us-east-1', accessKeyId: username, secretAccessKey: password }
  const client = new AwsClient({ ...address, service: 's3', retries: 0 })
  const created = await fetch(await client.sign(`${origin}/${bucket}`, { method: 'PUT' }))
  if (!created.ok) throw new Error(`no bucket: ${await created.text()}`)
  return address
}
