import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlDatabaseBytes, sqlRowsMax, sqlTimeoutMs } from '../../../limits/resources.ts'
import { openConnection } from '../../sqlite/connection.ts'
import type { SandboxLane } from './confined.ts'
import { SandboxProcess } from './process.ts'

const limits = { timeoutMs: sqlTimeoutMs, rowsMax: sqlRowsMax, bytesMax: sqlDatabaseBytes, answerBytesMax: 2 ** 20 }

test('a process for reads cannot write', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-lanes-'))
  const path = join(folder, 'main.sqlite')
  openConnection(path).close()
  const run = async (lane: SandboxLane, query: string): Promise<string> => {
    const process = new SandboxProcess(path, limits, lane)
    try {
      return (await process.run({ query, params: [] })).rows
    } finally {
      await process.close()
    }
  }
  await run('writes', 'CREATE TABLE t (n INTEGER)')
  for (const query of ['INSERT INTO t VALUES (1)', 'CREATE TABLE u (n)', 'DROP TABLE t', 'PRAGMA user_version = 7'])
    await expect(run('reads', query)).rejects.toThrow('readonly')
  await expect(run('reads', 'PRAGMA query_only = OFF')).rejects.toThrow('not allowed')
  expect(await run('reads', 'SELECT count(*) AS n FROM t')).toBe('[{"n":0}]')
  expect(await run('reads', 'SELECT name FROM sqlite_master')).toBe('[{"name":"t"}]')
  expect(await run('reads', 'PRAGMA user_version')).toBe('[{"user_version":0}]')
  rmSync(folder, { recursive: true })
})
