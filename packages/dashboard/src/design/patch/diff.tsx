/** The lines of a change, removed and added ones in color. */
import { Fragment } from 'react'
import type { DiffLine } from './line-diff.ts'

const marks = { same: ' ', removed: '−', added: '+' } as const

/** `parts` follow each other, with lines between them that are left out. */
export const Diff = ({ parts }: { readonly parts: readonly (readonly DiffLine[])[] }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
  <section className="diff" aria-label="Changed lines" tabIndex={0}>
    {parts.map((lines, part) => (
      // Parts and lines may be equal, and keep their order.
      <Fragment key={part}>
        {part > 0 && <div className="diff-gap">⋯</div>}
        {lines.map(({ kind, text }, at) => (
          <div key={at} className={`is-${kind}`}>
            <span aria-hidden="true">{marks[kind]}</span>
            {kind !== 'same' && <span className="visually-hidden">{kind}: </span>}
            <code>{text}</code>
          </div>
        ))}
      </Fragment>
    ))}
  </section>
)
