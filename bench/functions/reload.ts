/** The time from saving a function in development until its new code answers. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '../setup/measure.ts'
import { serviceKey, startServer } from '../setup/processes.ts'

const codeOf = (version: number): string => `import { functionsFor } from 'plinth/functions'
const { rpc } = functionsFor()
export const version = rpc({ caller: 'anyone' }, () => ${version})
`

export interface ReloadFigures {
  readonly medianMs: number
  readonly longestMs: number
}

export async function measureReload(work: string, rounds: number): Promise<ReloadFigures> {
  const folder = join(work, 'reload')
  mkdirSync(join(folder, 'functions'), { recursive: true })
  const config = join(folder, 'plinth.config.ts')
  writeFileSync(config, 'export default { databases: { shared: { tables: {} } } }\n')
  const save = (version: number): void => writeFileSync(join(folder, 'functions', 'index.ts'), codeOf(version))
  save(0)
  const server = await startServer(join(folder, 'data'), null, config, { command: 'dev' })
  const read = async (): Promise<unknown> => {
    const headers = { 'X-Platform-Service-Key': serviceKey }
    const response = await fetch(`${server.url}/api/fn/version`, { method: 'POST', headers })
    return response.json()
  }
  try {
    if ((await read()) !== 0) throw new Error('The function does not answer')
    const times: number[] = []
    for (let version = 1; version <= rounds; version++) {
      const startedMs = performance.now()
      save(version)
      while ((await read()) !== version) await Bun.sleep(1)
      times.push(performance.now() - startedMs)
    }
    return { medianMs: median(times), longestMs: Math.max(...times) }
  } finally {
    await server.stop()
  }
}
