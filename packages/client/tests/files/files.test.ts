/** Files: uploads of every size through broken connections, downloads, lists and URLs, against a server. */
import { beforeAll, expect, test } from 'bun:test'
import { describeServer, rootKey } from '../../../server/tests/harness/server.ts'
import { createClient, files, memoryStorage } from '../../src/index.ts'

const config = {
  databases: { shared: { tables: {} } },
  storage: { buckets: { box: { images: true, access: { read: true, write: true, delete: true } }, locked: {} } },
} as const

const megabyte = 1024 * 1024
const bytes = (size: number, seed = 1): Uint8Array<ArrayBuffer> => {
  const data = new Uint8Array(size)
  for (let at = 0; at < size; at++) data[at] = (at * 31 + seed) & 255
  return data
}
const same = async (blob: Blob, data: Uint8Array): Promise<boolean> =>
  Buffer.compare(Buffer.from(await blob.arrayBuffer()), Buffer.from(data)) === 0

describeServer('files of the client', { config }, (server) => {
  const connect = (options = {}) =>
    createClient<typeof config>(server.url, [files], { storage: memoryStorage(), serviceKey: rootKey, ...options })
  let box: ReturnType<ReturnType<typeof connect>['files']>
  beforeAll(() => {
    box = connect().files('box')
  })

  test('text, bytes and blobs are uploaded with their type and metadata', async () => {
    const progress: unknown[] = []
    const stored = await box.upload('notes/ä b.txt', 'hello', {
      contentType: 'text/plain',
      metadata: { from: 'test' },
      onProgress: (one) => progress.push(one),
    })
    expect(stored).toMatchObject({
      key: 'notes/ä b.txt',
      size: 5,
      contentType: 'text/plain',
      customMetadata: { from: 'test' },
    })
    expect(progress).toEqual([
      { sent: 0, total: 5 },
      { sent: 5, total: 5 },
    ])
    expect(await (await box.download('notes/ä b.txt')).text()).toBe('hello')
    await box.upload('raw', bytes(1000))
    expect(await same(await box.download('raw'), bytes(1000))).toBe(true)
    expect(await box.setMetadata('raw', { kept: 'yes' })).toMatchObject({ customMetadata: { kept: 'yes' } })
    expect(await box.metadata('raw')).toMatchObject({ customMetadata: { kept: 'yes' } })
  })

  test('a stream of unknown size is uploaded, below and above the size of a part', async () => {
    for (const size of [10, 12 * megabyte]) {
      const data = bytes(size, size)
      await box.upload(`stream-${size}`, new Blob([data]).stream())
      expect(await same(await box.download(`stream-${size}`), data)).toBe(true)
    }
  })

  test('lists are pages by prefix, and files are deleted one by one or together', async () => {
    for (const name of ['a', 'b', 'c']) await box.upload(`list/${name}`, name)
    const first = await box.list({ prefix: 'list/', limit: 2 })
    expect(first.items).toMatchObject([{ key: 'list/a', size: 1 }, { key: 'list/b' }])
    const second = await box.list({ prefix: 'list/', limit: 2, cursor: first.cursor as string })
    expect([second.items.length, second.cursor]).toEqual([1, null])
    await box.delete('list/a')
    await expect(box.delete(['list/a', 'list/b', 'list/c'])).rejects.toMatchObject({
      slug: 'not-deleted',
      data: [{ key: 'list/a' }],
    })
    expect((await box.list({ prefix: 'list/' })).items).toEqual([])
  })

  test('signed URLs work without credentials', async () => {
    await box.upload('signed', 'secret')
    const { url } = await box.signedUrl('signed', { expiresIn: '5m' })
    expect(await (await fetch(new URL(url, server.url))).text()).toBe('secret')
    expect(box.url('a/b c', { width: 10, format: 'webp' })).toBe(
      `${server.url}/api/storage/box/a%2Fb%20c?width=10&format=webp`,
    )
  })

  test('a large upload survives lost requests and lost answers', async () => {
    let count = 0
    const lossy = async (input: string | URL | Request, init?: RequestInit) => {
      count++
      if (count % 3 === 1) throw new TypeError('the connection was lost')
      const response = await fetch(input, init)
      if (count % 3 === 2 && init?.method !== 'HEAD') throw new TypeError('the answer was lost')
      return response
    }
    const data = bytes(17 * megabyte, 3)
    const sent: number[] = []
    await connect({ fetch: lossy })
      .files('box')
      .upload('lossy', new Blob([data]), { onProgress: (one) => sent.push(one.sent) })
    expect(await same(await box.download('lossy'), data)).toBe(true)
    expect(sent.at(-1)).toBe(data.length)
  })

  test('an aborted upload of a file continues where it ended, also after a reload', async () => {
    const storage = memoryStorage()
    const data = bytes(17 * megabyte, 5)
    const file = () => new File([data], 'video', { lastModified: 1 })
    const abort = new AbortController()
    const first = connect({ storage }).files('box')
    const uploading = first.upload('resumed', file(), {
      signal: abort.signal,
      onProgress: ({ sent }) => sent > 5 * megabyte && abort.abort(),
    })
    await expect(uploading).rejects.toMatchObject({ slug: 'aborted' })
    const offsets: number[] = []
    await connect({ storage })
      .files('box')
      .upload('resumed', file(), { onProgress: ({ sent }) => offsets.push(sent) })
    expect(offsets[0]).toBeGreaterThan(10 * megabyte)
    expect(await same(await box.download('resumed'), data)).toBe(true)
  })

  test('a canceled upload is deleted on the server, and a later one starts over', async () => {
    const storage = memoryStorage()
    const requests: [method: string, url: string][] = []
    const recording = (input: string | URL | Request, init?: RequestInit) => {
      requests.push([init?.method ?? 'GET', String(input)])
      return fetch(input, init)
    }
    const own = connect({ storage, fetch: recording }).files('box')
    const file = new File([bytes(17 * megabyte, 7)], 'video', { lastModified: 1 })
    const abort = new AbortController()
    const uploading = own.upload('canceled', file, {
      signal: abort.signal,
      onProgress: ({ sent }) => sent > 5 * megabyte && abort.abort(),
    })
    await expect(uploading).rejects.toMatchObject({ slug: 'aborted' })
    const [, location = ''] = requests.find(([method]) => method === 'PATCH') ?? []
    const { name, size, type, lastModified } = file
    await own.cancelUpload('canceled', { name, size, type, lastModified })
    const headers = { 'Tus-Resumable': '1.0.0', 'X-Platform-Service-Key': rootKey }
    expect((await fetch(location, { method: 'HEAD', headers })).status).toBe(404)
    await own.cancelUpload('canceled', file)
    expect(requests.filter(([method]) => method === 'DELETE')).toEqual([['DELETE', location]])
    requests.length = 0
    await own.upload('canceled', file)
    expect(requests[0]?.[0]).toBe('POST')
  })

  test('a refused upload is refused at once', async () => {
    const anonymous = createClient<typeof config>(server.url, [files], { storage: memoryStorage() })
    for (const size of [10, 6 * megabyte])
      await expect(anonymous.files('locked').upload('x', bytes(size))).rejects.toMatchObject({
        slug: 'authentication-required',
      })
  })
})
