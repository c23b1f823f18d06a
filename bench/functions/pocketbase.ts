/** PocketBase with the tables of the benchmark of hooks, and one hook in its JavaScript machine that does the same. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPocketBase } from '../setup/pocketbase.ts'
import type { BaselineProcess } from '../setup/processes.ts'

const hook = `onRecordCreate((e) => {
  e.record.set('slug', String(e.record.get('title')).toLowerCase().replaceAll(' ', '-'))
  e.next()
}, 'one')
`

export function openHooked(program: string, folder: string, core: number | null): Promise<BaselineProcess> {
  mkdirSync(join(folder, 'hooks'), { recursive: true })
  writeFileSync(join(folder, 'hooks/main.pb.js'), hook)
  const fields = [
    ...['title', 'body', 'slug'].map((name) => ({ name, type: 'text' })),
    { name: 'views', type: 'number' },
  ]
  return openPocketBase({
    program,
    folder,
    core,
    create: async (create) => {
      for (const name of ['none', 'one']) await create({ name, fields })
    },
  })
}
