/** Requests of the storage run. */
import type { LoadRequest } from '../load/load-requests.ts'
import { serviceKey } from '../setup/processes.ts'

/** An upload form with a file of `fillerBytes`. */
export function upload(bucket: string, key: string, bytes: number): LoadRequest {
  const boundary = 'a-boundary-of-the-benchmark'
  const part = (headers: string): string => `--${boundary}\r\nContent-Disposition: form-data; ${headers}\r\n\r\n`
  const begin = `${part('name="key"')}${key}\r\n${part('name="file"; filename="f"')}`
  const end = `\r\n--${boundary}--\r\n`
  const head = [
    `POST /api/storage/${bucket}/upload HTTP/1.1`,
    'Host: 127.0.0.1',
    `X-Platform-Service-Key: ${serviceKey}`,
    `Content-Type: multipart/form-data; boundary=${boundary}`,
    `Content-Length: ${begin.length + bytes + end.length}`,
  ].join('\r\n')
  return {
    text: `${head}\r\n\r\n${begin}`,
    filler: { bytes, end },
    expect: { status: 201, includes: `"size":${bytes},` },
  }
}

/** A download whose response must have this length. */
export const download = (path: string, bytes: number): LoadRequest => ({
  text: `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
  expect: { status: 200, bodyBytes: bytes },
})

/** A download of `bytes` bytes from the offset `start`. */
export const downloadRange = (path: string, start: number, bytes: number): LoadRequest => ({
  text: `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=${start}-${start + bytes - 1}\r\n\r\n`,
  expect: { status: 206, bodyBytes: bytes },
})

/** A list of all files below a prefix, at most a hundred. */
export const list = (bucket: string, prefix: string): LoadRequest => ({
  text: `GET /api/storage/${bucket}?prefix=${encodeURIComponent(prefix)}&limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Platform-Service-Key: ${serviceKey}\r\n\r\n`,
  expect: { status: 200, includes: `"${prefix}099"` },
})
