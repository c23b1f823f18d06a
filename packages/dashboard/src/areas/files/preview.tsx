/**
 * What can be seen of a file without running any of it: images of listed types from a `blob:` address, and text as
 * text. HTML and SVG are text. Whatever the type of the file is, nothing here opens it as a document.
 */
import { useEffect, useState } from 'react'
import { EmptyState } from '../../design/empty-state.tsx'
import { ErrorNote } from '../../design/error-note.tsx'
import { formatBytes } from '../../design/format/number.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { type StoredFile, useContent } from './requests.ts'

const imageTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'])
const textType = /^(?:text\/|application\/(?:json|xml|javascript|x-ndjson|yaml|toml|sql)$|.+\+(?:json|xml)$)/

const imageBytesMax = 25_000_000
const textBytesMax = 2_000_000
const shownCharsMax = 100_000

type Kind = 'image' | 'text' | 'none'

const essenceOf = (contentType: string): string => (contentType.split(';')[0] ?? '').trim().toLowerCase()

export function kindOf({ contentType, size }: Pick<StoredFile, 'contentType' | 'size'>): Kind {
  const type = essenceOf(contentType)
  if (imageTypes.has(type)) return size <= imageBytesMax ? 'image' : 'none'
  return textType.test(type) && size <= textBytesMax ? 'text' : 'none'
}

export function Preview({ bucket, file }: { readonly bucket: string; readonly file: StoredFile }) {
  const kind = kindOf(file)
  const { data, error, refetch } = useContent(bucket, file, kind !== 'none')
  if (kind === 'none')
    return (
      <EmptyState icon="file" title="No preview">
        Images up to {formatBytes(imageBytesMax)} and text up to {formatBytes(textBytesMax)} have one. Download the file
        to see it.
      </EmptyState>
    )
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton lines={5} />
  return kind === 'image' ? (
    <ImagePreview content={data} type={essenceOf(file.contentType)} name={file.key} />
  ) : (
    <TextPreview content={data} />
  )
}

interface ImagePreviewProps {
  readonly content: Blob
  readonly type: string
  readonly name: string
}

function ImagePreview({ content, type, name }: ImagePreviewProps) {
  const [address, setAddress] = useState<string | null>(null)
  const [isBroken, setBroken] = useState(false)
  useEffect(() => {
    const next = URL.createObjectURL(content.slice(0, content.size, type))
    setAddress(next)
    setBroken(false)
    return () => URL.revokeObjectURL(next)
  }, [content, type])
  if (isBroken)
    return (
      <EmptyState icon="file" title="Not an image">
        The content of this file does not match its type.
      </EmptyState>
    )
  if (address === null) return <Skeleton lines={5} />
  return (
    <div className="files-image">
      <img src={address} alt={`Preview of ${name}`} onError={() => setBroken(true)} />
    </div>
  )
}

function TextPreview({ content }: { readonly content: Blob }) {
  const [text, setText] = useState<string | null>(null)
  useEffect(() => {
    let isCurrent = true
    void content.text().then((all) => {
      if (isCurrent) setText(all)
    })
    return () => {
      isCurrent = false
    }
  }, [content])
  if (text === null) return <Skeleton lines={5} />
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <pre className="files-text" tabIndex={0}>
        {text.slice(0, shownCharsMax)}
      </pre>
      {text.length > shownCharsMax && <p>The beginning of the file. Download it to see the rest.</p>}
    </>
  )
}
