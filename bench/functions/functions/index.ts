/** The functions of the benchmark. */
import { functionsFor } from 'plinth/functions'

const { before } = functionsFor()

type Row = Readonly<Record<string, unknown>>

const addSlug = ({ row }: { row: Row }) => ({ ...row, slug: String(row.title).toLowerCase().replaceAll(' ', '-') })
const addView = ({ row }: { row: Row }) => ({ ...row, views: Number(row.views) + 1 })
const check = ({ row }: { row: Row }): undefined => {
  if (row.title === '') throw new Error('empty')
}

export const one = before('shared.one', ['insert'], addSlug)
export const first = before('shared.three', ['insert'], addSlug)
export const second = before('shared.three', ['insert'], addView)
export const third = before('shared.three', ['insert'], check)
