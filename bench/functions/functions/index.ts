/** The functions of the benchmark: hooks of the tables, and functions that fail. */
import { functionsFor } from 'plinth/functions'

const { before, rpc } = functionsFor()

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

export const loop = rpc({ caller: 'service', timeout: '1s' }, () => {
  for (;;);
})
/** 2 GB. */
export const hog = rpc({ caller: 'service' }, () => {
  const kept: Uint8Array[] = []
  for (let n = 0; n < 2048; n++) kept.push(new Uint8Array(1 << 20).fill(1))
  return kept.length
})
export const exit = rpc({ caller: 'service' }, () => process.exit(1))
export const reject = rpc({ caller: 'service' }, async () => {
  void Promise.reject(new Error('not handled'))
  await new Promise(() => {})
})
export const flood = rpc({ caller: 'service' }, (_: unknown, ctx) => {
  for (let n = 0; n < 1_000_000; n++) ctx.log.info(`line ${n}`)
})
