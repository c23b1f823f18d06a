/** Buckets: uploads, downloads, lists, metadata and URLs of files. */
import type { Core } from '../core/core.ts'
import type { Call } from '../core/deadline.ts'
import { PlinthError } from '../core/error.ts'
import type { Feature } from '../core/feature.ts'
import { queryString, type Request } from '../core/request.ts'
import type { FileData, FileIdentity, FileListOptions, ImageOptions, UploadOptions } from '../types/files.ts'
import { readBytes, uploadParts } from './parts.ts'
import { cancelUpload, uploadInChunks } from './tus.ts'

/** From this size on, an upload is resumable. */
const resumableBytes = 5 * 1024 * 1024
/** Keys of one request. */
const batchMax = 100

interface FileListAnswer {
  readonly objects: object[]
  readonly files?: object[]
  readonly cursor: string | null
}

/** What recognizes the same file after the page was loaded again. */
const fingerprintOf = (path: string, key: string, { size, type, lastModified, name }: FileIdentity): string =>
  `upload:${JSON.stringify([path, key, size, type, lastModified, name])}`

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

  async upload(key: string, data: FileData, options: UploadOptions = {}): Promise<object> {
    const { contentType, metadata, onProgress, signal } = options
    const progress = (total: number | null) => (sent: number) => onProgress?.({ sent, total })
    // React Native has no `ReadableStream`.
    if (globalThis.ReadableStream && data instanceof ReadableStream) {
      const reader = data.getReader()
      const first = await readBytes(reader, resumableBytes)
      if (first.isEnd) return this.#uploadDirectly(key, first.data, options)
      const upload = { core: this.#core, path: this.#path, key, contentType, metadata, signal }
      return uploadParts({ ...upload, onProgress: progress(null) }, first.data, reader)
    }
    const blob = data instanceof Blob ? data : new Blob([data as BlobPart], { type: contentType ?? '' })
    if (blob.size < resumableBytes) return this.#uploadDirectly(key, blob, options)
    const path = `${this.#path}/uploads/tus`
    const named: Record<string, string> = { key, contentType: contentType ?? blob.type }
    if (metadata) named.customMetadata = JSON.stringify(metadata)
    await uploadInChunks({
      core: this.#core,
      path,
      data: blob,
      metadata: named,
      fingerprint: options.resume !== false && 'lastModified' in blob ? fingerprintOf(path, key, blob as File) : null,
      signal,
      onProgress: progress(blob.size),
    })
    return this.metadata(key)
  }

  async #uploadDirectly(key: string, data: Blob, options: UploadOptions): Promise<object> {
    const { contentType = data.type, metadata, onProgress, signal, timeout } = options
    const form = new FormData()
    form.append('key', key)
    if (metadata) form.append('metadata', JSON.stringify(metadata))
    form.append('file', data.type === contentType ? data : data.slice(0, data.size, contentType), 'file')
    onProgress?.({ sent: 0, total: data.size })
    const file = await this.#json('POST', '/upload', { raw: form, signal, timeout })
    onProgress?.({ sent: data.size, total: data.size })
    return file
  }

  cancelUpload(key: string, file: FileIdentity): Promise<void> {
    return cancelUpload(this.#core, fingerprintOf(`${this.#path}/uploads/tus`, key, file))
  }

  download(key: string, options?: Call): Promise<Blob> {
    return this.#json('GET', pathOf(key), { ...options, as: 'blob' })
  }

  async list({ prefix, cursor, limit, ...options }: FileListOptions = {}): Promise<object> {
    const query = { prefix, cursor, limit }
    const { files, objects, cursor: next } = await this.#json<FileListAnswer>('GET', '', { ...options, query })
    return { items: files ?? objects, cursor: next }
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
    if (failed.length > 0)
      throw new PlinthError({ slug: 'not-deleted', message: `${failed.length} files were not deleted`, data: failed })
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

/** Files: uploads of any size, downloads, metadata and signed URLs. */
export const files: Feature = {
  name: 'files',
  install: (core) => ({ files: (name: string) => new Bucket(core, name) }),
}
