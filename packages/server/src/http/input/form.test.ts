import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ApiError, badRequest } from '../../errors.ts'
import { formFieldBytesMax, formFieldsMax } from '../../limits/storage.ts'
import { type FormFile, readForm } from './form.ts'
import { createRequestBody } from './request-body.ts'

/** A request whose body comes in pieces of this many bytes. */
function requestOf(body: Uint8Array, pieceBytes: number, contentType = 'multipart/form-data; boundary=b'): Request {
  let at = 0
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= body.length) return controller.close()
      controller.enqueue(body.slice(at, at + pieceBytes))
      at += pieceBytes
    },
  })
  return new Request('http://localhost/', { method: 'POST', body: stream, headers: { 'content-type': contentType } })
}

const part = (headers: string, content: string): string =>
  `--b\r\nContent-Disposition: form-data; ${headers}\r\n\r\n${content}\r\n`
const field = (name: string, content: string): string => part(`name="${name}"`, content)
const file = (content: string, headers = ''): string => part(`name="file"; filename="f"${headers}`, content)
const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const end = '--b--\r\n'

async function textOf({ body }: FormFile): Promise<string> {
  const pieces: Uint8Array[] = []
  for await (const piece of body) pieces.push(piece)
  return Buffer.concat(pieces).toString('latin1')
}

const read = (request: Request, onFile: (file: FormFile) => Promise<unknown> = textOf, fileBytesMax = 1e9) =>
  readForm(request.headers.get('content-type'), createRequestBody(request), { fileName: 'file', fileBytesMax, onFile })

async function refusalOf(reading: Promise<unknown>): Promise<[status: number, message: string]> {
  const error = await reading.then(
    () => new Error('was read'),
    (thrown) => thrown,
  )
  if (!(error instanceof ApiError)) throw error
  return [error.status, error.message]
}

describe('readForm', () => {
  test('any file is read unchanged, regardless of chunk boundaries', async () => {
    const piece = fc.constantFrom(
      '\r\n',
      '--b',
      '--b--',
      '-',
      '\r',
      'x',
      '\0',
      'Content-Disposition: form-data',
      '\xff',
    )
    const content = fc.array(piece).map((pieces) => pieces.join(''))
    await fc.assert(
      fc.asyncProperty(content, fc.integer({ min: 1, max: 40 }), async (text, pieceBytes) => {
        // The boundary itself cannot be in a file.
        fc.pre(!`\r\n${text}\r\n`.includes('\r\n--b'))
        const body = bytes(`${field('key', 'k')}${file(text)}${field('late', 'l')}${end}`)
        const form = await read(requestOf(body, pieceBytes))
        expect([form.file, Object.fromEntries(form.fields)]).toEqual([text, { key: 'k', late: 'l' }])
      }),
    )
  })

  test('file names may contain any character', async () => {
    for (const name of ['日本 語.txt', 'a; name=x', "it's", '%22']) {
      const form = new FormData()
      form.append('file', new Blob(['content']), name)
      form.append('key', 'ключ')
      const { file: found, fields } = await read(new Request('http://localhost/', { method: 'POST', body: form }))
      expect([found, fields.get('key')]).toEqual(['content', 'ключ'])
    }
  })

  test('the type is that of the part', async () => {
    const typeOf = async (headers: string) =>
      (await read(requestOf(bytes(file('x', headers) + end), 9), async (one) => [one.contentType, await textOf(one)]))
        .file
    expect(await typeOf('')).toEqual([null, 'x'])
    expect(await typeOf('\r\nContent-Type: image/png, text/html')).toEqual(['image/png, text/html', 'x'])
  })

  test('a slow consumer applies backpressure', async () => {
    let sent = 0
    const head = bytes('--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n')
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          sent += 1
          controller.enqueue(sent === 1 ? head : sent > 1000 ? bytes(`\r\n${end}`) : new Uint8Array(1000))
          if (sent > 1000) controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    const request = new Request('http://localhost/', { method: 'POST', body: stream, headers })
    const { file: taken } = await read(request, async ({ body }) => {
      let size = 0
      for await (const piece of body) {
        size += piece.length
        await new Promise((resolve) => setImmediate(resolve))
        // One piece is in the taker's hands, one in the parser's, one on its way.
        expect(sent * 1000 - size).toBeLessThanOrEqual(4000)
      }
      return size
    })
    expect(taken).toBe(999_000)
  })

  test.each([
    ['nothing', ''],
    ['no boundary in it', 'garbage'],
    ['no end of a field', field('key', 'k')],
    ['no end of the file', file('x')],
    ['half a header', '--b\r\nContent-Dispo'],
    ['a field twice', field('key', 'a') + field('key', 'b') + end],
    ['a file twice', file('a') + file('b') + end],
    ['another file', `${part('name="other"; filename="f"', 'x')}${end}`],
    ['a field that is not UTF-8', `${field('key', '\xff')}${end}`],
    ['too many fields', Array.from({ length: formFieldsMax + 1 }, (_, at) => field(`f${at}`, '')).join('') + end],
    ['a part without a name', `--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n${end}`],
    ['a part without headers', `--b\r\n\r\nx\r\n${end}`],
    ['a delimiter with something behind it', `--bx\r\n${end}`],
  ])('%s returns 400', async (_, body) => {
    for (const pieceBytes of [1, 7, 1e6])
      if (pieceBytes > 1 || body.length < 10_000)
        expect((await refusalOf(read(requestOf(bytes(body), pieceBytes))))[0]).toBe(400)
  })

  test('other content types return 415, a form without a boundary 400', async () => {
    for (const type of ['application/json', 'multipart/form-data', 'multipart/mixed; boundary=b', ''])
      expect((await refusalOf(read(requestOf(bytes(end), 9, type))))[0]).toBe(415)
    expect((await refusalOf(read(requestOf(bytes(end), 9, 'multipart/form-data; x=y'))))[0]).toBe(400)
  })

  test('fields and bodies are limited in size', async () => {
    const long = field('key', 'x'.repeat(formFieldBytesMax + 1))
    expect((await refusalOf(read(requestOf(bytes(long + end), 60_000))))[0]).toBe(413)
    const head = `--b\r\n${'x'.repeat(100_000)}`
    expect((await refusalOf(read(requestOf(bytes(head), 60_000))))[0]).toBe(413)
    const preamble = bytes('x'.repeat(3 * 1024 * 1024))
    expect((await refusalOf(read(requestOf(preamble, 60_000), textOf, 10)))[0]).toBe(413)
  })

  test('an error of the consumer is rethrown and stops reading', async () => {
    const body = bytes(file('x'.repeat(100_000)) + end)
    const request = requestOf(body, 1000)
    const refused = read(request, async ({ body: pieces }) => {
      for await (const _ of pieces) throw badRequest('enough')
    })
    expect(await refusalOf(refused)).toEqual([400, 'enough'])
  })

  test('a client that disconnects ends the file with an error', async () => {
    let ended: unknown = null
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes(file('first').slice(0, -2))),
      pull: (controller) => controller.error(new Error('gone')),
    })
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    const request = new Request('http://localhost/', { method: 'POST', body: stream, headers })
    const refused = read(request, async (one) => {
      await textOf(one).catch((error) => {
        ended = error
        throw error
      })
    })
    expect((await refusalOf(refused))[0]).toBe(400)
    expect(ended).toBeInstanceOf(ApiError)
  })
})
