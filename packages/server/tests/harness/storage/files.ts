/** Requests for files: forms, keys in paths, signed URLs, multipart and tus uploads. */
import type { Answer, Client, HeaderList } from '../client.ts'
import type { TestServer } from '../server.ts'

export interface Upload {
  readonly key: string
  readonly content: string | Uint8Array
  /** The content type of the form part; by default `application/octet-stream`. */
  readonly type?: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** A form with the fields in order; a `Blob` is a file. */
export function formOf(fields: readonly (readonly [name: string, value: string | Blob])[]): FormData {
  const form = new FormData()
  for (const [name, value] of fields)
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, value, 'name-of-the-client.bin')
  return form
}

export const formOfUpload = ({ key, content, type = '', metadata }: Upload): FormData =>
  formOf([
    ['key', key],
    ...(metadata ? ([['metadata', JSON.stringify(metadata)]] as const) : []),
    ['file', new Blob([content as BlobPart], { type })],
  ])

/** A body without Content-Length. */
export const chunked = (text: string): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text))
      controller.close()
    },
  })

/** The path of a bucket. */
export const bucketPath = (bucket: string): string => `/api/storage/${bucket}`

/** The path of a file, with the slashes of its key escaped. */
export const filePath = (bucket: string, key: string): string => `${bucketPath(bucket)}/${encodeURIComponent(key)}`

export const upload = (client: Client, bucket: string, file: Upload, query = ''): Promise<Answer> =>
  client.request('POST', `${bucketPath(bucket)}/upload${query}`, { raw: formOfUpload(file) })

/** Uploads a file; throws if it is refused. Returns its metadata. */
export async function store(client: Client, bucket: string, file: Upload): Promise<Answer['body']> {
  const { status, body, text } = await upload(client, bucket, file)
  if (status !== 201) throw new Error(`cannot store ${file.key}: ${status} ${text}`)
  return body
}

/** The path and query of a URL returned by the server. */
export const pathOf = (url: string): string => url.slice(new URL(url).origin.length)

/** Every file of a bucket with its content, to verify that a refused request changes nothing. */
export async function dumpBucket(server: TestServer, bucket: string): Promise<readonly object[]> {
  const { body } = await server.service.get(`${bucketPath(bucket)}?limit=1000`)
  return Promise.all(
    (body.objects as { key: string }[]).map(async ({ key }) => {
      const [{ text }, metadata] = await Promise.all([
        server.service.get(filePath(bucket, key)),
        server.service.get(`${filePath(bucket, key)}/metadata`),
      ])
      return { ...metadata.body, text }
    }),
  )
}

export const uploadPart = (
  client: Client,
  bucket: string,
  part: { uploadId: string; partNumber: number | string; key: string; token?: string },
  content: BodyInit,
  headers: HeaderList = {},
): Promise<Answer> => {
  const { token, ...rest } = part
  const query = new URLSearchParams({
    ...rest,
    partNumber: String(rest.partNumber),
    ...(token === undefined ? {} : { token }),
  })
  return client.request('POST', `${bucketPath(bucket)}/multipart/upload-part?${query}`, { raw: content, headers })
}

/** Creates a multipart upload and returns its id; throws if it is refused. */
export async function createMultipart(client: Client, bucket: string, body: object): Promise<string> {
  const answer = await client.post(`${bucketPath(bucket)}/multipart/create`, body)
  if (answer.status !== 200) throw new Error(`cannot begin: ${answer.status} ${answer.text}`)
  return answer.body.uploadId
}

export const tusHeaders = { 'tus-resumable': '1.0.0' } as const

/** The `Upload-Metadata` header for these members. */
export const tusMetadata = (members: Readonly<Record<string, string>>): string =>
  Object.entries(members)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join(',')

export const tusCreate = (
  client: Client,
  bucket: string,
  length: number,
  members: Readonly<Record<string, string>>,
  query = '',
): Promise<Answer> =>
  client.request('POST', `${bucketPath(bucket)}/uploads/tus${query}`, {
    headers: { ...tusHeaders, 'upload-length': String(length), 'upload-metadata': tusMetadata(members) },
  })

/** Creates a tus upload with its first bytes. `length` defaults to that of the content. */
export function tusUpload(
  client: Client,
  bucket: string,
  file: { readonly key: string; readonly content: string; readonly length?: number; readonly isChunked?: boolean },
  headers: HeaderList = {},
  query = '',
): Promise<Answer> {
  const { key, content, length = content.length, isChunked = false } = file
  return client.request('POST', `${bucketPath(bucket)}/uploads/tus${query}`, {
    raw: isChunked ? chunked(content) : content,
    headers: {
      ...tusHeaders,
      'content-type': 'application/offset+octet-stream',
      'upload-length': String(length),
      'upload-metadata': tusMetadata({ key }),
      ...headers,
    },
  })
}

export const tusPatch = (
  client: Client,
  location: string,
  offset: number,
  content: BodyInit,
  headers: HeaderList = {},
): Promise<Answer> =>
  client.request('PATCH', location, {
    raw: content,
    headers: {
      ...tusHeaders,
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(offset),
      ...headers,
    },
  })
