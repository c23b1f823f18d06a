/** Pictures in other sizes and formats: what is made, for whom, and what is not even tried. */
import { beforeAll, describe, expect, test } from 'bun:test'
import sharp from 'sharp'
import type { Auth } from '../../../src/config/define.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { filePath, pathOf, store } from '../../harness/storage/files.ts'

const own = (auth: Auth | null) => auth && { uploadedBy: auth.id }
const config = {
  storage: {
    buckets: {
      pictures: { images: true, access: { read: true, write: true, delete: true } },
      own: { images: true, access: { read: own, write: own } },
      plain: { access: { read: true, write: true } },
    },
  },
}

const picture = (width: number, height: number, background = 'red'): Promise<Uint8Array> =>
  sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer()

/** A PNG whose header declares this many pixels but that contains none. */
function bomb(side: number): Uint8Array {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
  const size = Buffer.alloc(8)
  size.writeUInt32BE(side, 0)
  size.writeUInt32BE(side, 4)
  const type = Buffer.from('0802000000', 'hex')
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(Bun.hash.crc32(Buffer.concat([Buffer.from('IHDR'), size, type])), 0)
  return Buffer.concat([head, size, type, crc, Buffer.from('0000000049444154', 'hex')])
}

describeServer('image transformations', { config }, (server) => {
  const path = filePath('pictures', 'a/red.png')
  beforeAll(async () => {
    await store(server.as('alice'), 'pictures', { key: 'a/red.png', content: await picture(100, 80) })
    await store(server.as('alice'), 'own', { key: 'red', content: await picture(100, 80) })
    await store(server.as('alice'), 'plain', { key: 'red', content: await picture(10, 10) })
  })

  const fetchPicture = async (query: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}${path}${query}`, { headers })
    const bytes = new Uint8Array(await response.arrayBuffer())
    return { response, bytes }
  }

  const cases: readonly [query: string, format: string, width: number, height: number][] = [
    ['?width=50', 'png', 50, 40],
    ['?height=40', 'png', 50, 40],
    ['?width=20&height=20', 'png', 20, 20],
    ['?width=20&height=20&fit=inside', 'png', 20, 16],
    ['?width=20&height=20&fit=outside', 'png', 25, 20],
    ['?width=10&height=40&fit=fill', 'png', 10, 40],
    ['?format=webp', 'webp', 100, 80],
    ['?width=10&format=jpg', 'jpeg', 10, 8],
    ['?width=10&format=jpeg', 'jpeg', 10, 8],
  ]
  for (const [query, format, width, height] of cases)
    test(`[STORE-IMG-1] ${query} returns ${format} of ${width} by ${height} pixels`, async () => {
      const { response, bytes } = await fetchPicture(query)
      expect(response.status).toBe(200)
      expect(response.headers.get('content-type')).toBe(`image/${format}`)
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      const found = await sharp(bytes).metadata()
      expect(found).toMatchObject({ format, width, height })
      const head = await server.anonymous.request('HEAD', path + query)
      expect(head.status).toBe(200)
      expect(head.headers.get('content-length')).toBe(String(bytes.length))
      const etag = response.headers.get('etag') ?? ''
      expect(head.headers.get('etag')).toBe(etag)
      expect((await fetchPicture(query, { 'if-none-match': etag })).response.status).toBe(304)
      const part = await fetchPicture(query, { range: 'bytes=0-3' })
      expect(part.response.status).toBe(206)
      expect(part.bytes).toEqual(bytes.subarray(0, 4))
    })

  test('[STORE-IMG-1] format=avif returns AVIF', async () => {
    const { response } = await fetchPicture('?width=8&format=avif')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('image/avif')
  })

  for (const query of [
    '?width=0',
    '?width=-1',
    '?width=4097',
    '?height=1e3',
    '?width=x',
    '?format=svg',
    '?format=gif',
    '?width=1&fit=crop',
    '?width=1.5',
  ])
    test(`[STORE-IMG-2] ${query} returns 400`, async () => {
      expectRefusal(await server.anonymous.get(path + query), 400)
    })

  test('[STORE-IMG-1, STORE-IMG-2] only for buckets with images enabled, and only for images', async () => {
    expectRefusal(await server.anonymous.get(`${filePath('plain', 'red')}?width=5`), 400)
    expect((await server.anonymous.get(`${filePath('plain', 'red')}?fit=cover`)).status).toBe(200)
    const files: readonly [key: string, content: string | Uint8Array, type: string][] = [
      ['text', 'hello', 'text/plain'],
      ['svg', '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', 'image/svg+xml'],
      ['spoofed', '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', 'image/png'],
      ['cut', (await picture(50, 50)).subarray(0, 60), 'image/png'],
    ]
    for (const [key, content, type] of files) {
      await store(server.service, 'pictures', { key, content, type })
      expectRefusal(await server.anonymous.get(`${filePath('pictures', key)}?width=5`), 400)
    }
  })

  test('[STORE-IMG-2] an image with too many pixels is not decoded', async () => {
    await store(server.service, 'pictures', { key: 'bomb', content: bomb(60_000) })
    expectRefusal(await server.anonymous.get(`${filePath('pictures', 'bomb')}?width=5`), 400)
  })

  test('[STORE-IMG-2] a variant that would have too many pixels is refused', async () => {
    await store(server.service, 'pictures', { key: 'tall', content: await picture(1, 2000) })
    await store(server.service, 'pictures', { key: 'wide', content: await picture(2000, 1) })
    const [tall, wide] = [filePath('pictures', 'tall'), filePath('pictures', 'wide')]
    const tooLarge = [
      `${tall}?width=4096`,
      `${tall}?width=4096&fit=contain&format=webp`,
      `${tall}?width=4096&height=1&fit=outside`,
      `${wide}?height=4096`,
      `${wide}?width=1&height=4096&fit=outside`,
    ]
    for (const one of tooLarge) {
      const { message } = expectRefusal(await server.anonymous.get(one), 400)
      expect(message).toMatch(/^The image would have \d+ pixels; the maximum for (png|webp) is \d+$/)
    }
    for (const [query, width, height] of [
      ['?width=2', 2, 4000],
      ['?width=4096&fit=inside', 1, 2000],
      ['?width=20&fit=fill', 20, 2000],
      ['?height=20&width=20', 20, 20],
      ['?format=webp', 1, 2000],
    ] as const) {
      const response = await fetch(server.url + tall + query)
      const found = await sharp(new Uint8Array(await response.arrayBuffer())).metadata()
      expect(response.status).toBe(200)
      expect(found).toMatchObject({ width, height })
    }
  })

  test('[STORE-IMG-1] the access rules of the file apply', async () => {
    const query = '?width=5'
    expectRefusal(await server.anonymous.get(filePath('own', 'red') + query), 401)
    expectRefusal(await server.as('bob').get(filePath('own', 'red') + query), 403)
    expect((await server.as('alice').get(filePath('own', 'red') + query)).status).toBe(200)
    const { url } = (await server.as('alice').post('/api/storage/own/signed-url', { key: 'red' })).body
    const signed = await server.anonymous.get(`${pathOf(url)}&width=5`)
    expect(signed.status).toBe(200)
    expect(signed.headers.get('content-type')).toBe('image/png')
    await store(server.as('alice'), 'own', { key: 'red', content: await picture(100, 80, 'blue') })
    expectRefusal(await server.anonymous.get(`${pathOf(url)}&width=5`), 412)
  })

  describe('cached variants', () => {
    test('[STORE-IMG-3] concurrent requests return the same variant, and a new file replaces it', async () => {
      await store(server.service, 'pictures', { key: 'kept', content: await picture(60, 60, 'red') })
      const fetchEtag = async () =>
        (await server.anonymous.get(`${filePath('pictures', 'kept')}?width=30&format=webp`)).headers.get('etag')
      const etags = new Set(await Promise.all(Array.from({ length: 40 }, fetchEtag)))
      expect(etags.size).toBe(1)
      await store(server.service, 'pictures', { key: 'kept', content: await picture(60, 60, 'blue') })
      expect(etags.has(await fetchEtag())).toBe(false)
      await server.service.delete(filePath('pictures', 'kept'))
      expectRefusal(await server.anonymous.get(`${filePath('pictures', 'kept')}?width=30&format=webp`), 404)
    })
  })
})
