/** Files of a bucket. */
import type { Call } from './options.ts'

export type FileData = Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array> | string

/** Bytes sent so far; `total` is null for a stream. */
export interface UploadProgress {
  sent: number
  total: number | null
}

export interface UploadOptions extends Call {
  contentType?: string
  metadata?: object
  onProgress?: (progress: UploadProgress) => void
  /** Whether an interrupted upload of the same data continues where it ended. */
  resume?: boolean
}

export interface FileListOptions extends Call {
  prefix?: string
  cursor?: string
  limit?: number
}

/** A file of a list. */
export interface StoredFile {
  key: string
  /** In bytes. */
  size: number
  contentType: string
  etag: string
  /** RFC 3339 in UTC with milliseconds. */
  uploaded: string
}

/** What recognizes a file of a device without reading it; a `File` is one. */
export interface FileIdentity {
  readonly name: string
  readonly size: number
  readonly type: string
  readonly lastModified: number
}

export interface FileList {
  items: StoredFile[]
  cursor: string | null
}

export interface SignedUrl {
  url: string
  expiresAt: string
}

export interface ImageOptions {
  width?: number
  height?: number
  fit?: string
  format?: string
}

export interface Bucket {
  upload(key: string, data: FileData, options?: UploadOptions): Promise<object>
  /** Forgets an interrupted upload of a file, and deletes what the server has of it. */
  cancelUpload(key: string, file: FileIdentity): Promise<void>
  download(key: string, options?: Call): Promise<Blob>
  list(options?: FileListOptions): Promise<FileList>
  metadata(key: string): Promise<object>
  setMetadata(key: string, metadata: object): Promise<object>
  delete(key: string | string[]): Promise<void>
  /** Durations are written `'15m'`, `'1h'`. */
  signedUrl(key: string, options?: { expiresIn?: string }): Promise<SignedUrl>
  signedUploadUrl(key: string, options?: { expiresIn?: string; maxFileSize?: string }): Promise<SignedUrl>
  /** The URL of a file, for buckets that are public. */
  url(key: string, image?: ImageOptions): string
}
