/** Requests and reports of the storage run. */
import { expect, test } from 'bun:test'
import { runLoad } from '../load/load.ts'
import { fillerBytes } from '../load/load-requests.ts'
import { replaceMeasured } from '../report.ts'
import { testEnvironment } from '../setup/fixtures/environment.ts'
import { growthVerdict } from './measure.ts'
import { toMarkdown } from './report.ts'
import { download, downloadRange, upload } from './requests.ts'
import { keyAt } from './setup.ts'

/** Sends each request once to a server with one handler. */
async function sendTo(
  answer: (request: Request) => Response | Promise<Response>,
  requests: Parameters<typeof runLoad>[0]['requests'],
) {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
  const job = { ports: [server.port as number], connections: 1, requests, total: requests.length, watched: [] }
  try {
    return await runLoad({ ...job, warmupSeconds: 0, seconds: 0 })
  } finally {
    await server.stop(true)
  }
}

test('an upload is a form with the key and the expected bytes', async () => {
  const bytes = 200_000
  const seen: unknown[] = []
  const result = await sendTo(
    async (request) => {
      const form = await request.formData()
      const file = form.get('file') as File
      seen.push([new URL(request.url).pathname, form.get('key'), fillerBytes(bytes).equals(await file.bytes())])
      return new Response(`{"size":${bytes},"key":"a/b"}`, { status: 201 })
    },
    [upload('files', 'a/b', bytes)],
  )
  expect(seen).toEqual([['/api/storage/files/upload', 'a/b', true]])
  expect(result.created).toBe(1)
})

test('a response with a wrong number of bytes fails the job', async () => {
  const bytes = Buffer.alloc(1000, 'x')
  const full = download('/file', 1000)
  const range = downloadRange('/file', 10, 20)
  const serve = (request: Request): Response => {
    const wanted = request.headers.get('range')
    if (wanted === null) return new Response(bytes)
    return new Response(wanted === 'bytes=10-29' ? bytes.subarray(10, 30) : null, { status: 206 })
  }
  expect((await sendTo(serve, [full, range])).answered).toBe(2)
  await expect(sendTo(serve, [download('/file', 999)])).rejects.toThrow('Body of 1000 bytes')
})

test('small files are numbered in folders of a hundred', () => {
  expect([0, 99, 100, 9999].map(keyAt)).toEqual([
    'small/0000/000',
    'small/0000/099',
    'small/0001/000',
    'small/0099/099',
  ])
})

const megabytes = 1024 * 1024

test.each([
  [100, 160, '+ 60 < 100 MB ✓'],
  [100, 200, '+ 100 < 100 MB ✗'],
  [200, 150, '+ 0 < 100 MB ✓'],
])('memory that grows from %i to %i MB is "%s"', (before, peak, verdict) => {
  expect(growthVerdict(before * megabytes, peak * megabytes)).toBe(verdict)
})

test('unknown memory has no verdict', () => {
  expect([growthVerdict(null, 1), growthVerdict(1, null)]).toEqual(['', ''])
})

test('the report mentions missing nginx, and only its part of the page is replaced', async () => {
  const plan = { rounds: 3, seconds: 1, warmupSeconds: 0.3 }
  const text = (nginxVersion: string | null) =>
    toMarkdown(testEnvironment, plan, { nginxVersion, loadBefore: 0.42, loadAfter: 2 }, [])
  expect(text(null)).toContain('no nginx on this machine')
  expect(text('1.22.1')).toContain('SQLite 3.50.0, nginx 1.22.1.')
  expect(text('1.22.1')).not.toContain('no nginx')
  expect(text(null)).toContain('before the run: 0.4; at its end: 2.0.')
  const page = await Bun.file(new URL('../../docs/benchmarks.md', import.meta.url)).text()
  const written = replaceMeasured(page, 'storage', 'the figures')
  expect(written.match(/the figures\n/g)).toHaveLength(1)
  expect(written.split('<!-- measured files: begin')[0]).toBe(page.split('<!-- measured files: begin')[0])
})
