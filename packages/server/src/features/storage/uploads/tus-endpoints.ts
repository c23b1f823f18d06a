/** HTTP endpoints of resumable uploads. `tus` implements the protocol. */
import { type Endpoint, endpoint } from '../../../http/endpoint.ts'
import { writeScope } from '../buckets.ts'
import { at, open, signedQuery } from '../schemas.ts'
import type { Admission } from './admission.ts'
import type { Tus } from './tus.ts'

export interface TusEndpointsDeps {
  readonly admission: Admission
  readonly tus: Tus
}

const tag = 'Storage: tus'
const common = { ...open, tag, query: signedQuery, scope: writeScope } as const

export const createTusEndpoints = ({ admission, tus }: TusEndpointsDeps): readonly Endpoint[] => [
  endpoint({
    tag,
    name: 'storage.tusOptions',
    method: 'OPTIONS',
    paths: at('/uploads/tus'),
    summary: 'tus capabilities',
    credentials: 'public',
    rateLimit: null,
    replies: { 204: { description: '`Tus-Version` and `Tus-Extension`' } },
    handle: tus.options,
  }),
  endpoint({
    ...common,
    name: 'storage.tusCreate',
    method: 'POST',
    paths: at('/uploads/tus'),
    summary: 'Create a resumable upload (tus)',
    description:
      'Requires `Upload-Length`, and `Upload-Metadata` with `key` and optionally `contentType` and `customMetadata` (JSON). A body is the first bytes of the file, or all of them, which stores it with this request; if it is refused, no upload is created.',
    accepts: { contentType: 'application/offset+octet-stream' },
    isBodyOptional: true,
    replies: {
      201: { description: '`Location` of the upload, and `Upload-Offset`: how many bytes of the body are stored' },
    },
    errors: [404, 409, 412, 413, 415],
    handle: async (call) => tus.create(await admission.authorizeUpload(call), call),
  }),
  endpoint({
    ...common,
    name: 'storage.tusHead',
    method: 'HEAD',
    paths: at('/uploads/tus/:uploadId'),
    summary: 'Get the offset of a resumable upload (tus)',
    replies: { 200: { description: '`Upload-Offset` and `Upload-Length`' } },
    errors: [404, 412],
    handle: async (call) => tus.head(await admission.authorizeUpload(call), call),
  }),
  endpoint({
    ...common,
    name: 'storage.tusPatch',
    method: 'PATCH',
    paths: at('/uploads/tus/:uploadId'),
    summary: 'Append to a resumable upload (tus)',
    accepts: { contentType: 'application/offset+octet-stream' },
    replies: { 204: { description: 'The new `Upload-Offset`; the last chunk stores the file' } },
    errors: [404, 409, 412, 413, 415],
    handle: async (call) => tus.patch(await admission.authorizeUpload(call), call),
  }),
  endpoint({
    ...common,
    name: 'storage.tusTerminate',
    method: 'DELETE',
    paths: at('/uploads/tus/:uploadId'),
    summary: 'Abort a resumable upload (tus)',
    replies: { 204: { description: 'Aborted' } },
    errors: [404, 412],
    handle: async (call) => tus.terminate(await admission.authorizeUpload(call), call),
  }),
]
