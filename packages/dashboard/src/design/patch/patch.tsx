/** A change of the configuration: its lines, removed and added ones in color, and the patch to copy. */
import { Fragment } from 'react'
import { CopyButton } from '../code-block.tsx'
import { type DiffLine, patchText } from './line-diff.ts'

const marks = { same: ' ', removed: '−', added: '+' } as const

interface PatchProps {
  /** The place in the configuration. */
  readonly path: string
  /** Lines that follow each other, with others between the parts that are left out. */
  readonly parts: readonly (readonly DiffLine[])[]
}

export const Patch = ({ path, parts }: PatchProps) => (
  <figure className="code-block">
    <figcaption>
      <code>{path}</code> in <code>plinth.config.ts</code>
    </figcaption>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
    <section className="diff" aria-label="Changed lines" tabIndex={0}>
      {parts.map((lines, part) => (
        // Parts and lines may be equal, and keep their order.
        <Fragment key={part}>
          {part > 0 && <div className="diff-gap">⋯</div>}
          {lines.map(({ kind, text }, at) => (
            <div key={at} className={`is-${kind}`}>
              <span className="diff-mark" aria-hidden="true">
                {marks[kind]}
              </span>
              {kind !== 'same' && <span className="visually-hidden">{kind}: </span>}
              <code>{text}</code>
            </div>
          ))}
        </Fragment>
      ))}
    </section>
    <CopyButton text={patchText(path, parts)} label="Copy the patch" />
  </figure>
)
