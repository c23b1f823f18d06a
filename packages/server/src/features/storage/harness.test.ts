/** For the tests of this folder: the storage feature without HTTP, on SQLite and files, with one bucket `files`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Caller, UserCaller } from '../../access/caller.ts'
import { createRuleEvaluator } from '../../access/rule-evaluator.ts'
import { systemClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { parseConfig } from '../../config/validate.ts'
import { openBlobs, openImages, openSql } from '../../engines/open.ts'
import { ApiError } from '../../errors.ts'
import type { Call, Reply } from '../../http/endpoint.ts'
import { emptyBody } from '../../http/input/request-body.ts'
import { responseBytesMax } from '../../limits/api.ts'
import { createStorage } from './index.ts'
import { prepareStorageTables } from './migrations.ts'

export interface TestStorage {
  /** Calls an endpoint; an API error becomes a reply with its status and message. */
  call(name: string, caller: Caller, call: Partial<Call>): Promise<Reply>
  close(): Promise<void>
}

const access = { read: true, write: true }

/** Must be closed. `reloadUser` decides whether the issuer of a signed URL is active. */
export async function openTestStorage(
  reloadUser: (user: UserCaller) => Promise<UserCaller | null> = async (user) => user,
): Promise<TestStorage> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-storage-'))
  const log = createLog({ level: 'error', format: 'json', write() {} })
  const sql = await openSql({ databaseUrl: null, dataFolder, prepareInstance: async () => {}, log })
  const blobs = await openBlobs({ s3: null, dataFolder, log })
  const rootKey = 'k'.repeat(32)
  const { config } = parseConfig({ storage: { buckets: { files: { access } } } }, { mode: 'release', rootKey })
  const { endpoints } = createStorage({
    store: await prepareStorageTables(sql),
    blobs,
    images: openImages(),
    buckets: () => config.buckets,
    hooks: () => null,
    appendChange: async () => {},
    ruleEvaluator: createRuleEvaluator({ sql, namespaces: () => config.namespaces }),
    secret: 's'.repeat(32),
    responseBytes: () => responseBytesMax,
    reloadUser,
    refreshClaims: async (user) => user,
    namesOf: async () => [],
    issuerPermits: async () => true,
    publicUrl: () => null,
    clock: systemClock,
    log,
  })
  return {
    async call(name, caller, call) {
      const endpoint = endpoints.find((one) => one.name === name)
      const fullCall: Call = {
        query: {},
        body: {},
        caller,
        headers: new Headers(),
        method: 'GET',
        path: '/',
        requestId: 'r1',
        address: '127.0.0.1',
        url: 'http://localhost/',
        signal: new AbortController().signal,
        rawBody: emptyBody(),
        ...call,
        params: { bucket: 'files', ...call.params },
      }
      try {
        return (await endpoint?.handle(fullCall)) as Reply
      } catch (error) {
        if (error instanceof ApiError) return { status: error.status, text: error.message }
        throw error
      }
    },
    async close() {
      await blobs.close()
      await sql.close()
      rmSync(dataFolder, { recursive: true })
    },
  }
}
