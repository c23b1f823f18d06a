/** Files as the API shows them, and the requests about them. */
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { isPlinthError } from 'plinth-client'
import { api, client } from '../../app/transport.ts'

export interface ListedFile {
  readonly key: string
  readonly size: number
  readonly contentType: string
  readonly etag: string
  readonly uploaded: string
}

export interface StoredFile extends ListedFile {
  readonly uploadedBy: string | null
  readonly customMetadata: Readonly<Record<string, string>>
}

interface FilePage {
  readonly files: readonly ListedFile[]
  readonly cursor: string | null
}

const pageSize = 500
const pathOf = (bucket: string): string => `/api/storage/${encodeURIComponent(bucket)}`
const pathOfFile = (bucket: string, key: string): string => `${pathOf(bucket)}/${encodeURIComponent(key)}`

/** The files whose keys begin with a prefix, in the order of their keys. */
export const useFiles = (bucket: string, prefix: string) =>
  useInfiniteQuery({
    queryKey: ['files', bucket, 'list', prefix],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => {
      const query = { prefix, limit: pageSize, ...(pageParam === '' ? {} : { cursor: pageParam }) }
      return api.get<FilePage>(pathOf(bucket), { query, signal })
    },
    getNextPageParam: ({ cursor }) => cursor,
  })

export const useFile = (bucket: string, key: string) =>
  useQuery({
    queryKey: ['files', bucket, 'file', key],
    queryFn: ({ signal }) => api.get<StoredFile>(`${pathOfFile(bucket, key)}/metadata`, { signal }),
  })

/** The bytes of a file in one version; a replaced file has another `etag`. */
export const useContent = (bucket: string, { key, etag }: ListedFile, isEnabled: boolean) =>
  useQuery({
    queryKey: ['files', bucket, 'content', key, etag],
    enabled: isEnabled,
    // Previews are not kept for longer than they are shown.
    gcTime: 0,
    queryFn: ({ signal }) => download(bucket, key, signal),
  })

export const download = (bucket: string, key: string, signal?: AbortSignal): Promise<Blob> =>
  client.files(bucket).download(key, signal && { signal })

/** Reads everything about a bucket again. */
export function useRefresh(bucket: string): () => Promise<void> {
  const queries = useQueryClient()
  return async () => {
    await Promise.all([
      queries.invalidateQueries({ queryKey: ['files', bucket, 'list'] }),
      queries.invalidateQueries({ queryKey: ['files', 'usage'] }),
    ])
  }
}

/** Whether a key has a file. Keys are in order, so that it would be the first with this prefix. */
export async function exists(bucket: string, key: string): Promise<boolean> {
  const { files } = await api.get<FilePage>(pathOf(bucket), { query: { prefix: key, limit: 1 } })
  return files[0]?.key === key
}

/** Rejects with the first reason if some files were not deleted; the others are. */
export async function deleteFiles(bucket: string, keys: readonly string[]): Promise<void> {
  try {
    await client.files(bucket).delete([...keys])
  } catch (error) {
    if (!isPlinthError(error) || error.slug !== 'not-deleted') throw error
    const failed = error.data as unknown as readonly { readonly key: string; readonly error: string }[]
    const [first] = failed
    throw new Error(`${failed.length} of ${keys.length} files were not deleted. ${first?.key}: ${first?.error}`)
  }
}
