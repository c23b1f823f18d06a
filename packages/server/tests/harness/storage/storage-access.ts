/** Who may ask each endpoint of storage. */
import { type Access, anyone } from '../resources/endpoint-access.ts'
import { filePath, formOf, tusHeaders, tusMetadata } from './files.ts'

const bucket = '/api/storage/denied'
/** An upload that nobody began: who may ask is told that it is not there. */
const session = { uploadId: crypto.randomUUID(), key: 'a' }
const partPath = `${bucket}/multipart/upload-part?${new URLSearchParams({ ...session, partNumber: '1' })}`
const file = filePath('denied', 'a')

const fileRead = { kind: 'rules', scope: 'storage:bucket:denied:read' } as const
const fileWrite = { kind: 'rules', scope: 'storage:bucket:denied:write', changes: true } as const
const fileDelete = { kind: 'rules', scope: 'storage:bucket:denied:delete', changes: true } as const
const upload = { kind: 'owner', scope: 'storage:bucket:denied:write' } as const

export const storageAccess: Readonly<Record<string, Access>> = {
  'storage.list': { ...fileRead, ask: (client) => client.get(bucket) },
  'storage.download': { ...fileRead, ask: (client) => client.get(file) },
  'storage.metadata': { ...fileRead, ask: (client) => client.get(`${file}/metadata`) },
  'storage.signedUrl': { ...fileRead, ask: (client) => client.post(`${bucket}/signed-url`, { key: 'a' }) },
  'storage.signedUrls': { ...fileRead, ask: (client) => client.post(`${bucket}/signed-urls`, { keys: ['a'] }) },
  'storage.upload': {
    ...fileWrite,
    ask: (client) => {
      const raw = formOf([
        ['key', 'a'],
        ['file', new Blob(['new'])],
      ])
      return client.request('POST', `${bucket}/upload`, { raw })
    },
  },
  'storage.updateMetadata': { ...fileWrite, ask: (client) => client.patch(`${file}/metadata`, { a: 'b' }) },
  'storage.signedUploadUrl': {
    ...fileWrite,
    ask: (client) => client.post(`${bucket}/signed-upload-url`, { key: 'a' }),
  },
  'storage.delete': { ...fileDelete, ask: (client) => client.delete(file) },
  'storage.deleteBatch': { ...fileDelete, ask: (client) => client.post(`${bucket}/delete-batch`, { keys: ['a'] }) },
  'storage.multipartCreate': {
    ...fileWrite,
    ask: (client) => client.post(`${bucket}/multipart/create`, { key: 'a' }),
  },
  'storage.uploadPart': {
    ...upload,
    ask: (client) => client.request('POST', partPath, { raw: 'x' }),
  },
  'storage.multipartComplete': {
    ...fileWrite,
    kind: 'owner',
    ask: (client) => client.post(`${bucket}/multipart/complete`, { ...session, parts: [{ partNumber: 1, etag: 'x' }] }),
  },
  'storage.multipartAbort': { ...upload, ask: (client) => client.post(`${bucket}/multipart/abort`, session) },
  'storage.multipartParts': {
    ...upload,
    ask: (client) => client.get(`${bucket}/uploads/${session.uploadId}/parts?key=a`),
  },
  'storage.tusOptions': { ...anyone, ask: (client) => client.request('OPTIONS', `${bucket}/uploads/tus`) },
  'storage.tusCreate': {
    ...fileWrite,
    ask: (client) =>
      client.request('POST', `${bucket}/uploads/tus`, {
        headers: { ...tusHeaders, 'upload-length': '3', 'upload-metadata': tusMetadata({ key: 'a' }) },
      }),
  },
  'storage.tusHead': {
    ...upload,
    ask: (client) => client.request('HEAD', `${bucket}/uploads/tus/${session.uploadId}`, { headers: tusHeaders }),
  },
  'storage.tusPatch': {
    ...upload,
    ask: (client) =>
      client.request('PATCH', `${bucket}/uploads/tus/${session.uploadId}`, {
        raw: 'x',
        headers: { ...tusHeaders, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
      }),
  },
  'storage.tusTerminate': {
    ...upload,
    ask: (client) => client.request('DELETE', `${bucket}/uploads/tus/${session.uploadId}`, { headers: tusHeaders }),
  },
}
