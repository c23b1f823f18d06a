/** Shows the tasks, live, and adds each line that is typed as a task. */
import { createInterface } from 'node:readline'
import { auth, createClient, isPlinthError, live, records } from 'plinth-client'
import { WebSocket as NodeWebSocket } from 'ws'
import type config from '../plinth.config'

const url = process.env.PLINTH_URL ?? 'http://127.0.0.1:4100'

const plinth = createClient<typeof config>(url, [records, auth, live], {
  // Node.js has a WebSocket of its own since version 22.
  WebSocket: globalThis.WebSocket ?? NodeWebSocket,
})
const { tasks } = plinth.db()

try {
  const { user } = await plinth.auth.signInAnonymously()
  const list = tasks.sort('createdAt', 'desc').limit(20).live()

  const show = (): void => {
    const { items, status } = list.current
    const lines = items.map(({ title, isDone }) => `  ${isDone ? '✓' : '·'} ${title}`)
    console.log([`\nTasks (${status}):`, ...(lines.length > 0 ? lines : ['  none yet'])].join('\n'))
  }
  list.subscribe(show)
  await list.ready
  console.log('Type a task and press Enter. Ctrl-C ends the program.')

  for await (const line of createInterface({ input: process.stdin })) {
    const title = line.trim()
    if (title !== '') await tasks.insert({ title, authorId: user.id })
  }
} catch (error) {
  if (!isPlinthError(error)) throw error
  console.error(error.slug === 'network' ? `No server answers at ${url}. Start it: npm run dev` : error.message)
  process.exitCode = 1
} finally {
  plinth.close()
}
