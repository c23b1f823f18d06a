/** The files of the drawer, page by page. */
import type { StoredFile } from 'plinth-client'
import { find, make } from '../../page-dom.ts'
import { formatBytes } from './format.ts'
import { bucket, plinth } from './plinth.ts'
import { button } from './upload-line.ts'

const filesPerPage = 60
const thumbnail = 'width=320&height=240&format=webp'
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])

/** Returns the function that reads the list again. */
export function createFileList(userId: string): () => Promise<void> {
  let cursor: string | null = null
  /** Lists may overlap when several uploads end at once; only the last one counts. */
  let readings = 0
  /** Cards by key. One whose file has not changed stays as it is, with its picture and its link. */
  const shown = new Map<string, { readonly etag: string; readonly card: HTMLElement }>()

  async function read(after?: string): Promise<void> {
    const reading = ++readings
    const page = await bucket.list({ prefix: `${userId}/`, limit: filesPerPage, ...(after && { cursor: after }) })
    const fresh = page.items.filter(({ key, etag }) => shown.get(key)?.etag !== etag)
    const links = await sign(fresh.filter(({ contentType }) => pictures.has(contentType)))
    if (reading !== readings) return
    for (const file of fresh) shown.set(file.key, { etag: file.etag, card: createCard(file, links.get(file.key)) })
    const cards = page.items.map(({ key }) => shown.get(key)?.card ?? '')
    if (after) find('files').append(...cards)
    else find('files').replaceChildren(...cards)
    cursor = page.cursor
    find('more').hidden = cursor === null
    count()
  }

  /** An `img` element sends no token, so it needs a signed URL. One request signs those of a page. */
  async function sign(files: readonly StoredFile[]): Promise<Map<string, string>> {
    if (files.length === 0) return new Map()
    const body = { keys: files.map(({ key }) => key), expiresIn: '1h' }
    const path = '/api/storage/drawer/signed-urls'
    const { urls } = await plinth.request<{ urls: { key: string; url: string }[] }>('POST', path, { body })
    return new Map(urls.map(({ key, url }) => [key, url]))
  }

  function count(): void {
    const files = find('files').children.length
    find('count').textContent = files === 1 ? '1 file' : `${files}${cursor === null ? '' : '+'} files`
    find('empty').hidden = files > 0
  }

  function createCard({ key, size, uploaded }: StoredFile, picture: string | undefined): HTMLElement {
    const name = key.slice(key.indexOf('/') + 1)
    const extension = /\.([^.]{1,5})$/.exec(name)?.[1] ?? 'file'
    const face = picture
      ? make('img', { className: 'face', src: `${picture}&${thumbnail}`, alt: '', width: 320, height: 240 })
      : make('span', { className: 'face' }, extension)
    const day = new Date(uploaded).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' })
    const share = button('Link', async () => {
      const { url } = await bucket.signedUrl(key, { expiresIn: '10m' })
      const title = 'Anyone with this link can download the file for 10 minutes'
      share.replaceWith(make('a', { href: url, title, target: '_blank', rel: 'noopener' }, 'Download'))
    })
    const remove = button('Delete', async () => {
      await bucket.delete(key)
      shown.delete(key)
      card.remove()
      count()
    })
    const note = make('span', { className: 'status' }, `${formatBytes(size)} · ${day}`)
    const buttons = make('span', { className: 'buttons' }, share, remove)
    const about = make('div', { className: 'about' }, make('strong', { title: name }, name), note, buttons)
    const card = make('li', { className: 'file' }, face, about)
    card.dataset.file = name
    return card
  }

  find('more').onclick = () => cursor && read(cursor)
  return () => read()
}
