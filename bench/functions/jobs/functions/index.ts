/** Functions that note when they run; `times` gives what they have noted since it was called last. */
import { functionsFor } from 'plinth/functions'

const { onChange, queue, rpc } = functionsFor()

const nowMs = (): number => performance.timeOrigin + performance.now()
/** Milliseconds from the request of a change to the start of its job. */
let lags: number[] = []
let jobs = 0
let lastMs = 0

export const follow = onChange('shared.orders', { on: ['insert'] }, ({ after }) => {
  lags.push(nowMs() - Number(after.sentAt))
})

export const work = queue('work', {}, () => {
  jobs += 1
  lastMs = nowMs()
})

export const fill = rpc({ caller: 'service' }, (count: number, ctx) =>
  ctx.service.db('shared').transaction(async () => {
    for (let n = 0; n < count; n++) void ctx.enqueue('work', { n })
  }),
)

export const echo = rpc({ caller: 'service' }, (input) => input)

export const times = rpc({ caller: 'service' }, () => {
  const noted = { lags, jobs, lastMs }
  lags = []
  jobs = 0
  return noted
})
