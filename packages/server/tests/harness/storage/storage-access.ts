/** Access to each storage endpoint, for the endpoint matrix. */
import { type Access, anyone } from '../resources/endpoint-access.ts'
import { filePath, formOf, tusHeaders, tusMetadata } from './files.ts'

const bucket = '/api/storage/denied'
/** An upload that does not exist: an authorized caller gets 404. */
const session = { uploadId: crypto.randomUUID(), key: 'a' }
const partPath = `${bucket}/multipart/upload-part?${new URLSearchParams({ ...session, partNumber: '1' })}`
const file = filePath('denied', 'a')

const fileRead = { kind: 'rules', scope: 'storage:bucket:denied:read' } as const
const fileWrite = { kind: 'rules', scope: 'storage:bucket:denied:write', changes: true } as const
const fileDelete = { kind: 'rules', scope: 'storage:bucket:denied:delete', changes: true } as const
const upload = { kind: 'owner', scope: 'storage:bucket:denied:write' } as const

export const storageAccess: Readonly<Record<string, Access>> = {
  'storage.list': { ...fileRead, send: (client) => client.get(bucket) },
  'storage.download': { ...fileRead, send: (client) => client.get(file) },
  'storage.metadata': { ...fileRead, send: (client) => client.get(`${file}/metadata`) },
  'storage.signedUrl': { ...fileRead, send: (client) => client.post(`${bucket}/signed-url`, { key: 'a' }) },
  'storage.signedUrls': { ...fileRead, send: (client) => client.post(`${bucket}/signed-urls`, { keys: ['a'] }) },
  'storage.upload': {
    ...fileWrite,
    send: (client) => {
      const raw = formOf([
        ['key', 'a'],
        ['file', new Blob(['new'])],
      ])
      return client.request('POST', `${bucket}/upload`, { raw })
    },
  },
  'storage.updateMetadata': { ...fileWrite, send: (client) => client.patch(`${file}/metadata`, { a: 'b' }) },
  'storage.signedUploadUrl': {
    ...fileWrite,
    send: (client) => client.post(`${bucket}/signed-upload-url`, { key: 'a' }),
  },
  'storage.delete': { ...fileDelete, send: (client) => client.delete(file) },
  'storage.deleteBatch': { ...fileDelete, send: (client) => client.post(`${bucket}/delete-batch`, { keys: ['a'] }) },
  'storage.multipartCreate': {
    ...fileWrite,
    send: (client) => client.post(`${bucket}/multipart/create`, { key: 'a' }),
  },
  'storage.uploadPart': {
    ...upload,
    send: (client) => client.request('POST', partPath, { raw: 'x' }),
  },
  'storage.multipartComplete': {
    ...fileWrite,
    kind: 'owner',
    send: (client) =>
      client.post(`${bucket}/multipart/complete`, { ...session, parts: [{ partNumber: 1, etag: 'x' }] }),
  },
  'storage.multipartAbort': { ...upload, send: (client) => client.post(`${bucket}/multipart/abort`, session) },
  'storage.multipartParts': {
    ...upload,
    send: (client) => client.get(`${bucket}/uploads/${session.uploadId}/parts?key=a`),
  },
  'storage.tusOptions': { ...anyone, send: (client) => client.request('OPTIONS', `${bucket}/uploads/tus`) },
  'storage.tusCreate': {
    ...fileWrite,
    send: (client) =>
      client.request('POST', `${bucket}/uploads/tus`, {
        headers: { ...tusHeaders, 'upload-length': '3', 'upload-metadata': tusMetadata({ key: 'a' }) },
      }),
  },
  'storage.tusHead': {
    ...upload,
    send: (client) => client.request('HEAD', `${bucket}/uploads/tus/${session.uploadId}`, { headers: tusHeaders }),
  },
  'storage.tusPatch': {
    ...upload,
    send: (client) =>
      client.request('PATCH', `${bucket}/uploads/tus/${session.uploadId}`, {
        raw: 'x',
        headers: { ...tusHeaders, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
      }),
  },
  'storage.tusTerminate': {
    ...upload,
    send: (client) => client.request('DELETE', `${bucket}/uploads/tus/${session.uploadId}`, { headers: tusHeaders }),
  },
}
