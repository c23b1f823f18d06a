/** Buckets: uploads, downloads, lists, metadata and URLs of files. */
import type { Core } from '../core/core.ts'
import type { Call } from '../core/deadline.ts'
import { PlinthError } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import { queryString, type Request } from '../core/request.ts'
import type { FileData, FileIdentity, FileListOptions, ImageOptions, UploadOptions } from '../types/files.ts'
import { partBytes, readPart, uploadParts } from './parts.ts'
import type { Target } from './target.ts'
import { cancelUpload, uploadInChunks } from './tus.ts'

/** Keys of one request. */
const batchMax = 100

interface FileListAnswer {
  readonly files: object[]
  readonly cursor: string | null
}

/** The encoded slash reaches every key, also one that looks like another path. */
const pathOf = (key: string): string => `/${encodeURIComponent(key)}`

export class Bucket {
  readonly #core: Core
  readonly #path: string

  constructor(core: Core, name: string) {
    this.#core = core
    this.#path = `/api/storage/${encodeURIComponent(name)}`
  }

  /** A request under the path of the bucket. */
  #json<Data = object>(method: string, path: string, request?: Request): Promise<Data> {
    return this.#core.json(method, this.#path + path, request)
  }

  #target(key: string, options: UploadOptions = {}): Target {
    return { core: this.#core, path: this.#path, key, options }
  }

  async upload(key: string, data: FileData, options?: UploadOptions): Promise<object> {
    const target = this.#target(key, options)
    // React Native has no `ReadableStream`.
    if (globalThis.ReadableStream && data instanceof ReadableStream) {
      const reader = data.getReader()
      const first = await readPart(reader)
      return first.size < partBytes ? uploadDirectly(target, first) : uploadParts(target, first, reader)
    }
    const blob = data instanceof Blob ? data : new Blob([data as BlobPart])
    if (blob.size < partBytes) return uploadDirectly(target, blob)
    await uploadInChunks(target, blob)
    return this.metadata(key)
  }

  cancelUpload(key: string, file: FileIdentity): Promise<void> {
    return cancelUpload(this.#target(key), file)
  }

  download(key: string, options?: Call): Promise<Blob> {
    return this.#json('GET', pathOf(key), { ...options, as: 'blob' })
  }

  async list({ prefix, cursor, limit, ...options }: FileListOptions = {}): Promise<object> {
    const query = { prefix, cursor, limit }
    const { files, cursor: next } = await this.#json<FileListAnswer>('GET', '', { ...options, query })
    return { items: files, cursor: next }
  }

  metadata(key: string): Promise<object> {
    return this.#json('GET', `${pathOf(key)}/metadata`)
  }

  setMetadata(key: string, metadata: object): Promise<object> {
    return this.#json('PATCH', `${pathOf(key)}/metadata`, { body: metadata })
  }

  /** Rejects if one of several files was not deleted; `data` names it, and the others are deleted. */
  async delete(key: string | readonly string[]): Promise<void> {
    if (typeof key === 'string') return void (await this.#json('DELETE', pathOf(key)))
    const failed: object[] = []
    for (let at = 0; at < key.length; at += batchMax) {
      const body = { keys: key.slice(at, at + batchMax) }
      failed.push(...(await this.#json<{ failed: object[] }>('POST', '/delete-batch', { body })).failed)
    }
    if (failed.length > 0) throw new PlinthError({ slug: 'not-deleted', data: failed })
  }

  signedUrl(key: string, options?: object): Promise<object> {
    return this.#json('POST', '/signed-url', { body: { key, ...options } })
  }

  signedUploadUrl(key: string, options?: object): Promise<object> {
    return this.#json('POST', '/signed-upload-url', { body: { key, ...options } })
  }

  url(key: string, image: ImageOptions = {}): string {
    return this.#core.url + this.#path + pathOf(key) + queryString(image)
  }
}

async function uploadDirectly({ core, path, key, options }: Target, data: Blob): Promise<object> {
  const { size } = data
  const { contentType = data.type, metadata, onProgress, signal, timeout } = options
  const form = new FormData()
  form.append('key', key)
  if (metadata) form.append('metadata', JSON.stringify(metadata))
  form.append('file', data.slice(0, size, contentType), 'file')
  onProgress?.({ sent: 0, total: size })
  const file = await core.json<object>('POST', `${path}/upload`, { raw: form, signal, timeout })
  onProgress?.({ sent: size, total: size })
  return file
}

/** Files: uploads of any size, downloads, metadata and signed URLs. */
export const files: Feature = (core) => ({ files: (name: string) => new Bucket(core, name) })
